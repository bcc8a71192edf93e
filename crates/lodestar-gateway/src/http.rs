//! The service as it is reached: routes, tokens, limits.
