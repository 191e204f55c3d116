//! Many threads on one unordered store: guarantees for readers while others write and the table
//! changes its layout.

use crate::stores::unordered::tests_of;
use ats_mem::HashTable;

tests_of!(hash_table, HashTable, 0);
