//! Names of everything that is derived from an object.
