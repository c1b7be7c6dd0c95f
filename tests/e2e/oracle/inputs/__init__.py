"""The questions to the oracle: texts made by grammars that know where implementations differ, from a seeded source."""
