//! Reconstruction of a table's lost [`Description`]: the name of the store's merge operator gives
//! the merge, and the records show which tables they can belong to.

use crate::terms::description::Description;
use crate::terms::merge_text;
use crate::terms::store::object_merge::ObjectMerge;
use crate::terms::store::program_merge::{self, ProgramMerge};
use crate::terms::table::TableType;
use ats_store::lifetime::{mark_operator, unmark_operator};
use ats_store::{Lifetime, MergeOperator};
use ats_term::exact::{self, exact_key};
use ats_term::order::order_key_within;
use ats_term::{Term, Zeros, etf};

/// Returns the merge that a text names, in the form of a [`Description`]: `sum`, `{prune, sum}` or
/// `prune(sum)`, `{module, highest_bid, 1}` with the version of the module. `None` if no such merge
/// exists.
#[must_use]
pub fn parse_merge(text: &str) -> Option<Vec<u8>> {
    keep_if_known(etf::encode(&merge_text::parse(text)?).ok()?)
}

/// Returns the merge of a table whose store has a merge operator of this name and version, and the
/// position of the key, from 1, if the name contains it. `None` if tables have no such operator.
/// The merge is empty if the name says only that objects expire, as those of other stores may do,
/// too.
#[must_use]
pub fn merge_of_operator(name: &str, version: u32) -> Option<(Vec<u8>, Option<usize>)> {
    let name = unmark_operator(name).unwrap_or(name);
    if name.is_empty() {
        return Some((Vec::new(), None));
    }
    if let Some(program) = name.strip_prefix(program_merge::PREFIX) {
        let program = if program.starts_with('{') {
            merge_text::parse(program)?
        } else {
            Term::Atom(ats_term::Atom::new(program).ok()?)
        };
        return Some((program_merge::describe(program, version)?, None));
    }
    let (merge, element) = name.strip_prefix("ats.")?.rsplit_once(" of element ")?;
    let merge = merge.strip_suffix(",zeros=same").unwrap_or(merge);
    let key_position = element.parse::<usize>().ok()?.checked_sub(1)?;
    (key_position > 0).then_some(())?;
    let merge = parse_merge(merge)?;
    Some((merge, Some(key_position)))
}

/// Returns the merge if tables know it.
fn keep_if_known(merge: Vec<u8>) -> Option<Vec<u8>> {
    let description = Description {
        table_type: TableType::Set,
        key_position: 1,
        zeros: Zeros::Distinct,
        merge,
        has_shared: false,
        format: Vec::new(),
        lifetime: None,
    };
    operator(&description)?;
    Some(description.merge)
}

/// Returns the name and the version of the merge operator of the store of a table with this
/// description. `None` if it has no operator, or if this version does not know its merge.
#[must_use]
pub fn operator(description: &Description) -> Option<(String, u32)> {
    let of_merge = operator_of_merge(description);
    if description.lifetime.is_none() || (of_merge.is_none() && !description.merge.is_empty()) {
        return of_merge;
    }
    let name = of_merge.as_ref().map(|(name, _)| &name[..]);
    let version = of_merge.as_ref().map_or(1, |(_, version)| *version);
    Some((mark_operator(name), version))
}

fn operator_of_merge(description: &Description) -> Option<(String, u32)> {
    if let Some(merge) = ProgramMerge::of(description) {
        return Some((merge.name().to_owned(), merge.version()));
    }
    let merge = ObjectMerge::of(description)?;
    Some((merge.name().to_owned(), merge.version()))
}

/// Returns the objects of a value of a table, or of an operand of one. `None` if the bytes are not
/// those of objects.
#[must_use]
pub fn objects_of(value: &[u8]) -> Option<Vec<Term>> {
    let objects = objects(value)?.into_iter();
    Some(objects.map(|(_, object)| object).collect())
}

/// Returns the object of a record that holds one of several objects of its key. `None` if the bytes
/// are not those of an object.
#[must_use]
pub fn object_alone(bytes: &[u8]) -> Option<Term> {
    object_of(bytes)
}

/// The tables that can contain all records that were examined.
///
/// Each record has its key twice: in the key bytes of the store, and in its objects. After one
/// record there is seldom a doubt about the type of the table and the position of the key.
#[derive(Default)]
pub struct Evidence {
    merge: Vec<u8>,
    /// The lifetime of the possible tables.
    lifetime: Option<Lifetime>,
    possible: Vec<Description>,
    /// Key and object of the last record that holds one of several objects.
    last: (Vec<u8>, Vec<u8>),
}

/// Types of tables in which a record holds all objects of a key.
const WHOLE: [TableType; 4] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
];
/// The same, of tables whose objects expire.
const EXPIRING: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];
/// Types of tables in which each object has its own record.
const ALONE: [TableType; 4] = [
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];

impl Evidence {
    /// Returns evidence without records about a table with this merge, which is empty if values are
    /// not merged. `expires` tells if objects expire; then values begin with deadlines, and nothing
    /// tells the time of the table: infinity is a guess.
    #[must_use]
    pub fn new(merge: Vec<u8>, expires: bool) -> Self {
        Evidence {
            merge,
            lifetime: expires.then_some(Lifetime::Forever),
            ..Evidence::default()
        }
    }

    /// Returns all tables that the records can belong to. The right table is among them, unless the
    /// result is empty: then no record has said anything.
    #[must_use]
    pub fn possible(&self) -> &[Description] {
        &self.possible
    }

    /// Examines a record: its key, and its value, or an operand that follows the value. A record
    /// says nothing if its key cannot be encoded again, for example because it contains a pid of a
    /// node that has ended.
    pub fn meet(&mut self, key: &[u8], value: &[u8]) {
        let value = match (self.lifetime, Lifetime::split(value)) {
            (None, _) => value,
            (Some(_), Some((_, content))) => content,
            (Some(_), None) => return,
        };
        let types: &[TableType] = match self.lifetime {
            None => &WHOLE,
            Some(_) => &EXPIRING,
        };
        if let Some(objects) = objects(value) {
            self.meet_objects(key, &objects, types);
        }
    }

    /// Examines a record that holds one of several objects of its key. Equal records must be passed
    /// one after the other.
    pub fn meet_alone(&mut self, key: &[u8], object: &[u8]) {
        let Some(objects) = object_of(object).map(|term| [(object, term)]) else {
            return;
        };
        self.meet_objects(key, &objects, &ALONE);
        let (last_key, last) = &mut self.last;
        if last_key == key && last == object {
            self.possible
                .retain(|table| !table.table_type.is_distinct_bag());
        }
        key.clone_into(last_key);
        object.clone_into(last);
    }

    fn meet_objects(&mut self, key: &[u8], objects: &[(&[u8], Term)], types: &[TableType]) {
        let candidates = if self.possible.is_empty() {
            self.candidates(objects, types)
        } else {
            self.possible.clone()
        };
        let fitting = candidates
            .into_iter()
            .filter(|one| types.contains(&one.table_type) && fits(one, key, objects));
        let fitting: Vec<_> = fitting.collect();
        if !fitting.is_empty() {
            self.possible = fitting;
        }
    }

    /// Returns all tables that can contain these objects, for any keys.
    fn candidates(&self, objects: &[(&[u8], Term)], types: &[TableType]) -> Vec<Description> {
        let types = types.iter().copied();
        let types = types.filter(|one| self.merge.is_empty() || !one.is_bag());
        let types: Vec<_> = types.collect();
        let arities = objects.iter().filter_map(|(_, object)| object.as_tuple());
        let positions = 1..=arities.map(<[Term]>::len).min().unwrap_or(0);
        let tables = positions.flat_map(|key_position| {
            let types = types.iter();
            let types = types.map(move |table_type| (key_position, *table_type));
            types.flat_map(|(key_position, table_type)| {
                [Zeros::Distinct, Zeros::Same].map(|zeros| (table_type, key_position, zeros))
            })
        });
        let tables = tables.map(|(table_type, key_position, zeros)| Description {
            table_type,
            key_position,
            zeros,
            merge: self.merge.clone(),
            has_shared: false,
            format: Vec::new(),
            lifetime: self.lifetime,
        });
        tables.collect()
    }
}

/// Returns the objects of a record, with their bytes. `None` if the value is not a list of objects.
fn objects(value: &[u8]) -> Option<Vec<(&[u8], Term)>> {
    let mut objects = Vec::new();
    for bytes in program_merge::objects(value).ok()? {
        objects.push((bytes, object_of(bytes)?));
    }
    (!objects.is_empty()).then_some(objects)
}

/// Decodes an object. `None` if the bytes are not an object.
fn object_of(bytes: &[u8]) -> Option<Term> {
    let object = etf::decode(bytes, etf::Options::TRUSTED).ok()?;
    object.as_tuple().is_some().then_some(object)
}

/// Returns `true` if a table can contain this record.
fn fits(table: &Description, key: &[u8], objects: &[(&[u8], Term)]) -> bool {
    let is_of = |object: &Term| {
        let element = object
            .as_tuple()
            .and_then(|them| them.get(table.key_position - 1));
        element.is_some_and(|element| key_bytes(table, element) == key)
    };
    // Values that are not merged yet are separate objects.
    let has_room = table.table_type.is_bag() || !table.merge.is_empty() || objects.len() == 1;
    has_room
        && objects.iter().all(|(_, object)| is_of(object))
        && (!table.table_type.is_distinct_bag() || are_different(objects))
}

fn are_different(objects: &[(&[u8], Term)]) -> bool {
    let mut bytes: Vec<_> = objects.iter().map(|(bytes, _)| *bytes).collect();
    bytes.sort_unstable();
    bytes.windows(2).all(|two| two[0] != two[1])
}

/// Returns the bytes of a key in the store of a table.
fn key_bytes(table: &Description, key: &Term) -> Vec<u8> {
    let mut bytes = Vec::new();
    if table.table_type.is_ordered() {
        let _work = order_key_within(key, &mut bytes, table.zeros, usize::MAX);
    } else {
        let options = exact::Options {
            zeros: table.zeros,
            atoms: exact::Atoms::Text,
        };
        exact_key(key, &mut bytes, options);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::store::operator::PortableMerge;
    use ats_merge::Merge;

    fn table(table_type: TableType, key_position: usize) -> Description {
        Description {
            table_type,
            key_position,
            zeros: Zeros::Distinct,
            merge: Vec::new(),
            has_shared: false,
            format: Vec::new(),
            lifetime: None,
        }
    }

    fn value(objects: &[Term]) -> Vec<u8> {
        let mut value = Vec::new();
        for object in objects {
            let bytes = etf::encode(object).expect("a short term");
            value.extend((bytes.len() as u32).to_le_bytes());
            value.extend(bytes);
        }
        value
    }

    /// Returns the types and key positions that are possible after one record of a table.
    fn evidence_left(table: &Description, objects: &[Term]) -> Vec<(TableType, usize)> {
        let mut evidence = Evidence::default();
        let element = &objects[0].as_tuple().expect("a tuple")[table.key_position - 1];
        let value = value(objects);
        evidence.meet(&key_bytes(table, element), &value);
        let possible = evidence.possible().iter();
        let mut left: Vec<_> = possible
            .map(|one| (one.table_type, one.key_position))
            .collect();
        left.dedup();
        left
    }

    #[test]
    fn records_tell_the_table() {
        use TableType::{Bag, DuplicateBag, OrderedSet, Set};
        let (one, other) = (Term::from(("a", 7)), Term::from(("b", 7)));
        let at = |types: &[TableType]| types.iter().map(|one| (*one, 2)).collect::<Vec<_>>();
        assert_eq!(
            evidence_left(&table(OrderedSet, 2), std::slice::from_ref(&one)),
            at(&[OrderedSet])
        );
        assert_eq!(
            evidence_left(&table(Set, 2), std::slice::from_ref(&one)),
            at(&[Set, Bag, DuplicateBag])
        );
        let two = [one.clone(), other];
        assert_eq!(
            evidence_left(&table(Bag, 2), &two),
            at(&[Bag, DuplicateBag])
        );
        let same = [one.clone(), one];
        assert_eq!(
            evidence_left(&table(DuplicateBag, 2), &same),
            at(&[DuplicateBag])
        );
    }

    #[test]
    fn records_that_expire_tell_the_table() {
        let mut evidence = Evidence::new(Vec::new(), true);
        let value = Lifetime::Forever.before(&value(&[Term::from(("a", 7))]));
        evidence.meet(
            &key_bytes(&table(TableType::Set, 2), &Term::from(7)),
            &value,
        );
        let possible = evidence.possible();
        assert!(possible.iter().all(|one| one.lifetime.is_some()));
        assert_eq!(possible[0].table_type, TableType::Set);
        evidence.meet(b"k", b"short");
        assert!(!evidence.possible().is_empty());
    }

    #[test]
    fn records_of_one_object_are_those_of_bags() {
        use TableType::{Bag, DuplicateBag, OrderedDuplicateBag};
        let object = etf::encode(&Term::from(("a", 7))).expect("a short term");
        let other = etf::encode(&Term::from(("b", 7))).expect("a short term");
        let left = |table_type, objects: &[&[u8]]| {
            let mut evidence = Evidence::default();
            let key = key_bytes(&table(table_type, 2), &Term::from(7));
            for object in objects {
                evidence.meet_alone(&key, object);
            }
            let possible = evidence.possible().iter();
            let mut left: Vec<_> = possible.map(|one| one.table_type).collect();
            left.dedup();
            left
        };
        let both = [Bag, DuplicateBag];
        assert_eq!(left(Bag, &[&object, &other]), both);
        assert_eq!(left(Bag, &[&object, &object]), [DuplicateBag]);
        let same = [&object[..], &object];
        assert_eq!(left(OrderedDuplicateBag, &same), [OrderedDuplicateBag]);
    }

    #[test]
    fn foreign_records_are_no_evidence() {
        let mut evidence = Evidence::default();
        let object = value(&[Term::from((1, 2))]);
        for (key, value) in [(&b"k"[..], &b"value"[..]), (b"k", b""), (b"k", &object)] {
            evidence.meet(key, value);
            assert_eq!(evidence.possible(), []);
        }
    }

    #[test]
    fn the_name_of_the_operator_tells_the_merge() {
        for text in [
            "sum",
            "last(2)",
            "prune(append)",
            "vector(sum,vector(max),union)",
            "union",
        ] {
            let merge = parse_merge(text).expect("a merge");
            for zeros in [Zeros::Same, Zeros::Distinct] {
                let table = Description {
                    zeros,
                    merge: merge.clone(),
                    ..table(TableType::Set, 3)
                };
                let (name, version) = operator(&table).expect("an operator");
                let told = merge_of_operator(&name, version);
                assert_eq!(told, Some((merge.clone(), Some(3))), "{name}");
            }
        }
        let program = parse_merge("{module,'Elixir.Highest.Bid',7}").expect("a merge");
        let told = merge_of_operator("erlang.Elixir.Highest.Bid", 7);
        assert_eq!(told, Some((program, None)));
        // The name is that of the operator of a store of values, which is not a table.
        let merge = Merge::from_term(&merge_text::parse("sum").expect("a term"));
        let store = PortableMerge::new(merge.expect("a merge"), Zeros::Distinct);
        assert_eq!(merge_of_operator(store.name(), 1), None);
        for name in ["append", "ats.sum of element 1", "ats.add of element 2"] {
            assert_eq!(merge_of_operator(name, 1), None, "{name}");
        }
        for merge in [Vec::new(), parse_merge("sum").expect("a merge")] {
            let table = Description {
                merge: merge.clone(),
                lifetime: Some(Lifetime::Forever),
                ..table(TableType::Set, 3)
            };
            let (name, version) = operator(&table).expect("an operator");
            let (told, _) = merge_of_operator(&name, version).expect("of a table");
            assert_eq!(told, merge, "{name}");
        }
        assert_eq!(parse_merge("add"), None);
    }
}
