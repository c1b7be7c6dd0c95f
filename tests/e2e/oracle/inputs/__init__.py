"""The questions to the oracle: texts made by grammars that know where implementations part, from a seeded source."""
