"""What the oracle is asked: texts made by grammars that know where implementations part, from a seeded source."""
