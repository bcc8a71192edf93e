//! The other side of the routes: for devices, owners and runs.
