"""Self-RAG's reflection tokens (§3.1, Table 1) and the tags around a passage: one control token each."""

from __future__ import annotations

RETRIEVAL, NO_RETRIEVAL, CONTINUE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
RETRIEVE = (NO_RETRIEVAL, RETRIEVAL, CONTINUE)
"""Whether passages are retrieved before what comes next, or those at hand are used further."""

RELEVANT, IRRELEVANT = "[Relevant]", "[Irrelevant]"
IS_REL = (RELEVANT, IRRELEVANT)
"""Whether a passage is of use for the question; stands behind it."""

FULL, PARTIAL, NONE = "[Fully supported]", "[Partially supported]", "[No support / Contradictory]"
IS_SUP = (FULL, PARTIAL, NONE)
"""Whether the passage supports what was said; stands behind that."""

IS_USE = ("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]")
"""How useful the whole answer is, from 1 to 5; stands at the end."""

PARAGRAPH, END_PARAGRAPH = "<paragraph>", "</paragraph>"

ALL = (*RETRIEVE, *IS_REL, *IS_SUP, *IS_USE, PARAGRAPH, END_PARAGRAPH)
"""All fifteen, as the released checkpoints name them."""
