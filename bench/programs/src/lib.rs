//! Programs of users, each written with another crate and with ours: `src/bin`. They print the
//! same, and ours are not longer.
//!
//! | program | with | with ours |
//! |---|---|---|
//! | a cache of pages, and requests counted by minute | `scc`: `hits_scc` | `hits_ats` |
//! | readings of sensors on disk, and their totals | `fjall`: `readings_fjall` | `readings_ats` |
