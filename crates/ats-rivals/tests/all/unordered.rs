//! Tests of many threads on a store without order: the guarantees for readers while others write
//! and the table changes its layout.

use crate::stores::unordered::tests_of;
use ats_rivals::LockedHashMap;

tests_of!(locked_hash_map, LockedHashMap, 1);
