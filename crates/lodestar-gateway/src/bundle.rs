//! A run's log on its way to the service, and whether it is what was attested.
