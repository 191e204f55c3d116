//! A simulated machine for the tests of this crate: its disk forgets, tears and reorders unsynced
//! writes.
//!
//! # The disk
//! A file has a durable content and a shown content, a directory has durable names and shown names.
//! An action of a program changes the shown state, and is appended to one list of pending actions
//! of the whole disk. A sync of a file makes its pending actions durable and takes them off the
//! list, a sync of a directory does that with its names. Neither does it for the other: a name may
//! be durable before the content of its file is, and the other way round.
//!
//! # A stop of the machine
//! [`SimFs::record`](fs::SimFs::record) keeps the disk before each call. From such a
//! [`Point`](fault::Point) a [`Survival`](survival::Survival) makes an image, which a later start
//! of the machine finds: the durable state, and any part of the pending actions. A write may
//! survive up to any byte, or in some of its sectors, or as length only, which then reads as zeros.
//! A rename may leave both names. Everything of an image is durable.
//!
//! [`Survival::Process`](survival::Survival::Process) is the end of the process alone: everything
//! is shown as before, and pending actions stay pending.
//!
//! # Errors
//! A [`Fault`](fault::Fault) fails a chosen call. A write that fails may be done in part, or as a
//! whole. A sync that fails does the worst that Linux does: pending actions may be lost, they are
//! shown as before, and as they are not pending any more, the next sync succeeds without writing
//! them. A disk may be limited; a write then ends where the disk is full.
//!
//! # Cost

// Each test program uses a part of this module.
#![allow(dead_code)]

pub(crate) mod action;
pub(crate) mod bag_store;
pub(crate) mod broken;
pub(crate) mod content;
pub(crate) mod disk;
pub(crate) mod disk_store;
pub(crate) mod expiring;
pub(crate) mod explore;
pub(crate) mod fault;
pub(crate) mod fs;
pub(crate) mod history;
pub(crate) mod liar;
pub(crate) mod model;
pub(crate) mod random;
pub(crate) mod salvaged;
pub(crate) mod subject;
pub(crate) mod survival;
pub(crate) mod toy;
pub(crate) mod transaction;
pub(crate) mod world;
