//! Ownership of the resources in host boxes: every unit is given up exactly once.
//!
//! The host here counts units. It keeps every identity and every bitstring of more than 16 bits
//! under a number, but leaves every third bitstring to the image, as a host may.

use ats_term::arbitrary::any_term;
use ats_term::image::{
    Built, Host, HostBox, HostKind, HostSink, HostTag, HostTerm, ImageBuilder, NewValue, Object,
    ObjectList, ObjectListBuilder, Packer, Scratch, Stored, decode_object, for_each_owned,
    image_eq, release_all, retain_all,
};
use ats_term::order::order_key;
use ats_term::term::{Map, TermBuilder, Tuple};
use ats_term::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;
use std::cell::RefCell;

const PLAIN: HostTag = HostTag::plain(63);
const COUNTED: HostTag = HostTag::owning(63);

#[derive(Default)]
struct Ledger {
    /// Every kept term, with the number of its outstanding units.
    kept: Vec<(Term, isize)>,
    /// Number of bitstrings offered to the host, and the one at which it panics.
    offered: usize,
    panic_at: usize,
    /// Number of requests for the pairs of a map.
    maps: usize,
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// Returns the number of outstanding units.
fn out() -> isize {
    LEDGER.with_borrow(|ledger| ledger.kept.iter().map(|(_, units)| units).sum())
}

/// Returns `true` if no unit was given up twice, independent of the sum.
fn never_below_zero() -> bool {
    LEDGER.with_borrow(|ledger| ledger.kept.iter().all(|(_, units)| *units >= 0))
}

fn keep(term: &Term, units: isize, words: &mut Vec<u64>) {
    LEDGER.with_borrow_mut(|ledger| {
        words.push(ledger.kept.len() as u64);
        ledger.kept.push((term.clone(), units));
    });
}

#[derive(Clone, Copy, Debug)]
enum Counting {}

type CountedBox<'a> = HostBox<'a, Counting>;

fn kept_term(host_box: CountedBox<'_>) -> Term {
    LEDGER.with_borrow(|ledger| ledger.kept[host_box.words()[0] as usize].0.clone())
}

fn count(host_box: CountedBox<'_>, units: isize) {
    assert_eq!(host_box.tag(), COUNTED);
    LEDGER.with_borrow_mut(|ledger| {
        let count = &mut ledger.kept[host_box.words()[0] as usize].1;
        *count += units;
        assert!(*count >= 0, "given back twice");
    });
}

impl Host for Counting {
    type Term<'a> = Counted<'a>;

    fn kind(host_box: CountedBox<'_>) -> HostKind {
        match kept_term(host_box) {
            Term::Bits(bits) => HostKind::Bits(bits.bit_len()),
            Term::Pid(_) => HostKind::Pid,
            Term::Port(_) => HostKind::Port,
            Term::Ref(_) => HostKind::Ref,
            Term::LocalFun(_) => HostKind::LocalFun,
            Term::ExternalFun(_) => HostKind::ExternalFun,
            Term::NativeRecord(_) => HostKind::Opaque,
            other => panic!("never kept: {other}"),
        }
    }

    fn with_bits<R>(host_box: CountedBox<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
        (&kept_term(host_box)).with_bits(f)
    }

    fn with_ident<R>(host_box: CountedBox<'_>, f: impl FnOnce(Ident<'_>) -> R) -> R {
        (&kept_term(host_box)).with_ident(f)
    }

    fn with_fun<R>(host_box: CountedBox<'_>, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        (&kept_term(host_box)).with_fun(f)
    }

    fn with_opaque<R>(host_box: CountedBox<'_>, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        (&kept_term(host_box)).with_opaque(f)
    }

    fn with_atom<R>(slot: u64, f: impl FnOnce(&str) -> R) -> R {
        f(Atom::from_id(slot >> 6).expect("an atom").as_str())
    }

    fn with_local<R>(_: u64, _: impl FnOnce(Ident<'_>) -> R) -> R {
        unreachable!("owned terms have no immediate identifiers")
    }

    fn same(a: CountedBox<'_>, b: CountedBox<'_>) -> bool {
        kept_term(a) == kept_term(b)
    }

    fn kept_bytes(host_box: CountedBox<'_>) -> usize {
        match kept_term(host_box) {
            Term::Bits(bits) => bits.bit_len().div_ceil(8),
            _ => 0,
        }
    }

    fn retain(host_box: CountedBox<'_>) {
        count(host_box, 1);
    }

    unsafe fn release(host_box: CountedBox<'_>) {
        count(host_box, -1);
    }
}

/// A term of the counting host.
#[derive(Clone, Copy)]
struct Counted<'a>(&'a Term);

impl TermRef for Counted<'_> {
    fn kind(self) -> Kind<Self> {
        self.0.kind().map(Counted)
    }

    fn immediate(self) -> Option<u64> {
        self.0.immediate()
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        self.0.with_big(f)
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        self.0.with_atom(f)
    }

    fn element(self, i: usize) -> Self {
        Counted(self.0.element(i))
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let mut pairs = Vec::new();
        self.0.map_pairs(&mut pairs);
        // Pairs are shown in another order each time, as a hash map may do.
        let turn = LEDGER.with_borrow_mut(|ledger| {
            ledger.maps += 1;
            ledger.maps % pairs.len().max(1)
        });
        pairs.rotate_left(turn);
        out.extend(
            pairs
                .into_iter()
                .map(|(key, value)| (Counted(key), Counted(value))),
        );
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bits(f)
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        self.0.with_ident(f)
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        self.0.with_fun(f)
    }

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        self.0.with_opaque(f)
    }
}

// SAFETY: `Counting` follows no pointers. An owning box is written with one unit in the ledger.
unsafe impl HostTerm for Counted<'_> {
    type Host = Counting;

    const LARGE_BITS: usize = 16;

    fn write_identity(self, kind: HostKind, words: &mut Vec<u64>) -> HostTag {
        let owns = kind != HostKind::Pid;
        keep(self.0, isize::from(owns), words);
        if owns { COUNTED } else { PLAIN }
    }

    fn write_large_bits(self, _: usize, words: &mut Vec<u64>) -> Option<HostTag> {
        let (offered, panic_at) = LEDGER.with_borrow_mut(|ledger| {
            ledger.offered += 1;
            (ledger.offered, ledger.panic_at)
        });
        assert_ne!(offered, panic_at, "the host was told to panic");
        (offered % 3 != 0).then(|| {
            keep(self.0, 1, words);
            // A meaningless second word makes equal terms differ in length.
            words.extend((offered % 2 == 0).then_some(u64::MAX));
            COUNTED
        })
    }
}

/// A builder of owned terms from the boxes of the counting host.
struct CountedBuilder(TermBuilder);

impl ats_term::TermSink for CountedBuilder {
    type Term = ats_term::term::Built;

    fn immediate(&mut self, word: u64) -> Self::Term {
        self.0.immediate(word)
    }
    fn big(&mut self, negative: bool, magnitude: &[u8]) -> Self::Term {
        self.0.big(negative, magnitude)
    }
    fn float(&mut self, value: f64) -> Self::Term {
        self.0.float(value)
    }
    fn bits(&mut self, bytes: &[u8], bits: usize) -> Self::Term {
        self.0.bits(bytes, bits)
    }
    fn tuple(&mut self, elements: &[Self::Term]) -> Self::Term {
        self.0.tuple(elements)
    }
    fn cons(&mut self, head: Self::Term, tail: Self::Term) -> Self::Term {
        self.0.cons(head, tail)
    }
    fn map(&mut self, keys: &[Self::Term], values: &[Self::Term]) -> Self::Term {
        self.0.map(keys, values)
    }
}

impl HostSink<Counting> for CountedBuilder {
    fn host_box(&mut self, host_box: CountedBox<'_>) -> Self::Term {
        self.0.add(kept_term(host_box))
    }
}

fn read(object: Object<'_, Counting>) -> Term {
    let mut sink = CountedBuilder(TermBuilder::new());
    let built = decode_object(object, &mut sink, &mut Scratch::new());
    sink.0.finish(built).expect("a term")
}

/// A record of a table: words that own their resources.
struct Record(Vec<u64>);

impl Record {
    fn new(built: Built<'_, Counting>) -> Self {
        let record = Self(built.words().to_vec());
        assert_eq!(built.owns(), record.units() > 0);
        record
    }

    fn as_stored(&self) -> Stored<'_, Counting> {
        // SAFETY: the words are those of an object that was built, and live as long as the record.
        unsafe { Stored::from_words(&self.0) }
    }

    fn object<'r>(&'r self, room: &'r mut Vec<u64>) -> Object<'r, Counting> {
        self.as_stored().object(room)
    }

    fn list(&self) -> ObjectList<'_, Counting> {
        // SAFETY: the words were built as a list and live as long as the record; tests call this
        // only for records that hold a list.
        unsafe { ObjectList::from_words(&self.0) }
    }

    fn units(&self) -> isize {
        let mut units = 0;
        // SAFETY: the words were built, and live as long as the record.
        unsafe { for_each_owned::<Counting>(&self.0, |_| units += 1) };
        units
    }
}

impl Clone for Record {
    fn clone(&self) -> Self {
        // SAFETY: the words were built, and live as long as the record.
        assert_eq!(unsafe { retain_all::<Counting>(&self.0) }, self.units() > 0);
        Self(self.0.clone())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: the record owns the units of its words and gives them up here.
        unsafe { release_all::<Counting>(&self.0) };
    }
}

fn any_object() -> impl Strategy<Value = Term> {
    prop::collection::vec(any_term(), 1..5).prop_map(|terms| Term::Tuple(Tuple::new(terms)))
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Term),
    InsertPacked(Term),
    InsertAndRegret(Term),
    Replace(prop::sample::Index, Vec<(prop::sample::Index, Term)>),
    Copy(prop::sample::Index),
    Delete(prop::sample::Index),
    Gather,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let changes = prop::collection::vec((index(), any_term()), 0..4);
    prop_oneof![
        2 => any_object().prop_map(Step::Insert),
        3 => any_object().prop_map(Step::InsertPacked),
        1 => any_object().prop_map(Step::InsertAndRegret),
        3 => (index(), changes).prop_map(|(at, changes)| Step::Replace(at, changes)),
        1 => index().prop_map(Step::Copy),
        1 => index().prop_map(Step::Delete),
        1 => Just(Step::Gather),
    ]
}

/// Runs a step on records and on their model.
fn run(step: &Step, records: &mut Vec<Record>, model: &mut Vec<Term>) {
    let mut builder = ImageBuilder::<Counted<'_>>::new(Zeros::Distinct);
    match step {
        Step::Insert(object) => {
            builder.encode_object(Counted(object)).expect("a tuple");
            records.push(Record::new(builder.take()));
            model.push(object.clone());
        }
        Step::InsertPacked(object) => {
            builder.encode_object(Counted(object)).expect("a tuple");
            let mut packer = Packer::new();
            records.push(Record::new(packer.pack(builder.take())));
            model.push(object.clone());
        }
        Step::InsertAndRegret(object) => {
            builder.encode_object(Counted(object)).expect("a tuple");
            builder.encode_object(Counted(object)).expect("a tuple");
            assert!(builder.encode_object(Counted(&Term::Nil)).is_err());
        }
        Step::Gather => gather(records, model),
        _ if records.is_empty() => {}
        Step::Replace(at, changes) => {
            let at = at.index(records.len());
            let mut elements = model[at].as_tuple().expect("a tuple").to_vec();
            let mut values = Vec::new();
            for (i, term) in changes {
                let i = i.index(elements.len());
                elements[i] = term.clone();
                values.push((i, NewValue::Term(Counted(term))));
            }
            builder.replace_elements(records[at].object(&mut Vec::new()), &values);
            records[at] = Record::new(builder.take());
            model[at] = Term::Tuple(Tuple::new(elements));
        }
        Step::Copy(at) => {
            let at = at.index(records.len());
            records.push(records[at].clone());
            model.push(model[at].clone());
        }
        Step::Delete(at) => {
            let at = at.index(records.len());
            records.remove(at);
            model.remove(at);
        }
    }
}

/// Gathers all objects in one list, and applies all list operations.
fn gather(records: &[Record], model: &[Term]) {
    let mut builder = ObjectListBuilder::new();
    for record in records {
        builder.push_copy(record.as_stored());
    }
    let all = Record::new(builder.take());
    let again = all.clone();
    let objects: Vec<Term> = again
        .list()
        .iter()
        .map(|stored| read(stored.object(&mut Vec::new())))
        .collect();
    assert_eq!(objects, model);
    builder.start();
    builder.push_all_but(again.list(), 0);
    assert_eq!(builder.list().iter().count(), model.len().saturating_sub(1));
    builder.start();
    assert!(builder.is_empty());
}

proptest! {
    #[test]
    fn every_unit_is_given_back_once(steps in prop::collection::vec(step(), 0..25)) {
        let before = out();
        let mut records = Vec::new();
        let mut model = Vec::new();
        for step in &steps {
            run(step, &mut records, &mut model);
            let held: isize = records.iter().map(Record::units).sum();
            prop_assert_eq!(out() - before, held);
            prop_assert!(never_below_zero());
            for (record, term) in records.iter().zip(&model) {
                prop_assert_eq!(&read(record.object(&mut Vec::new())), term);
            }
        }
        drop(records);
        prop_assert_eq!(out(), before);
        prop_assert!(never_below_zero());
    }

    #[test]
    fn equal_terms_need_not_have_equal_words(a in any_object(), b in any_object()) {
        // Each bitstring is alternately in the image and with the host, so both forms are compared.
        let mut images = Vec::new();
        for term in [&a, &a, &a, &b] {
            let mut builder = ImageBuilder::new(Zeros::Distinct);
            builder.encode_object(Counted(term)).expect("a tuple");
            images.push((Record::new(builder.take()), term));
        }
        for (x, term_x) in &images {
            let mut keys = [Vec::new(), Vec::new()];
            order_key(x.object(&mut Vec::new()).term(), &mut keys[0], Zeros::Distinct);
            order_key(*term_x, &mut keys[1], Zeros::Distinct);
            prop_assert_eq!(&keys[0], &keys[1]);
            for (y, term_y) in &images {
                prop_assert_eq!(
                    image_eq(x.object(&mut Vec::new()), y.object(&mut Vec::new()), Zeros::Distinct),
                    term_x == term_y
                );
            }
        }
    }
}

#[test]
fn equal_maps_have_equal_words() {
    let pairs = (0..40).map(|i: i64| {
        let key = match i % 4 {
            0 => Term::from(i),
            1 => Term::binary(&[i as u8]),
            2 => Term::from(vec![Term::from(i)]),
            _ => Term::from(i128::from(i) << 70),
        };
        (key, Term::from(i))
    });
    let map = Map::new(pairs.collect()).expect("distinct keys");
    let object = Term::Tuple(Tuple::new(vec![Term::Map(map)]));
    let mut builder = ImageBuilder::<Counted<'_>>::new(Zeros::Distinct);
    let mut images = std::collections::HashSet::new();
    for _ in 0..40 {
        builder.encode_object(Counted(&object)).expect("a tuple");
        images.insert(builder.object().words().to_vec());
        assert_eq!(read(builder.object()), object);
    }
    assert_eq!(images.len(), 1);
}

#[test]
fn a_panic_of_the_host_leaks_nothing() {
    let binary = Term::binary(b"more than sixteen bits");
    let object = Term::from((binary.clone(), binary.clone(), binary));
    let mut builder = ImageBuilder::<Counted<'_>>::new(Zeros::Distinct);
    for nth in 1..=3 {
        LEDGER.with_borrow_mut(|ledger| ledger.panic_at = ledger.offered + nth);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            builder.encode_object(Counted(&object))
        }));
        assert!(result.is_err());
        assert_eq!(builder.owns(), out() > 0);
    }
    builder.encode_object(Counted(&object)).expect("a tuple");
    assert_eq!(read(builder.object()), object);
    drop(builder);
    assert_eq!(out(), 0);
    assert!(never_below_zero());
}
