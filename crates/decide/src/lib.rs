//! What to do about an object, from what was observed: pure.
