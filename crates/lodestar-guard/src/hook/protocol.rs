//! What each client says and wants to hear, as documented by its makers.
