//! Many threads on one store without order: what readers may rely on while others write and the
//! table changes its layout under them.

use crate::stores::unordered::tests_of;
use ats_rivals::LockedHashMap;

tests_of!(locked_hash_map, LockedHashMap, 1);
