"""The foundation of both programs: facts, servers, values, flags. It knows no metric and no decision."""
