//! What is asked of the gateway, what it decides, and what it records; without HTTP.
