//! Tables on rival stores. Only builds with the feature `rivals` have them.

use super::{Table, TableType};
use crate::terms::store::Records;
use ats_rivals::Rival;
use ats_term::Zeros;
use ats_term::image::Host;

impl<H: Host> Table<H> {
    /// Returns an empty table on a rival store; `None` if the store does not suit the type.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn on_rival(
        rival: Rival,
        table_type: TableType,
        key_position: usize,
        zeros: Zeros,
    ) -> Option<Self> {
        let suits = if rival.is_ordered() {
            table_type == TableType::OrderedSet
        } else {
            !table_type.is_ordered()
        };
        let records = suits.then(|| Records::of_rival(rival))?;
        Some(Self::on(records, table_type, key_position, zeros))
    }

    /// Returns the rival store of the table, if it is on one.
    pub fn rival(&self) -> Option<Rival> {
        self.store(&ats_sync::pin()).rival()
    }
}
