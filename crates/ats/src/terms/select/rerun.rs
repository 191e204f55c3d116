//! The second run of a program on an object, just before its change.

use crate::terms::bag::{NewObject, Replace, Replacement};
use crate::terms::lookup_result::LookupResult;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, Values, record};
use ats_match::{Environment, Machine, Program, RunTerm};
use ats_mem::Change;
use ats_term::image::{Host, ImageBuilder, NoImage, Object, Packer};
use ats_term::{Kind, TermRef};

/// The second run of a program, under the lock of a key, or while only the key is held.
pub(super) struct Rerun<'a, H: Host, E> {
    pub(super) table: &'a Table<H>,
    pub(super) program: &'a Program<H>,
    pub(super) environment: &'a E,
    pub(super) machine: &'a mut Machine<H>,
    pub(super) image: &'a mut ImageBuilder<RunTerm<'static, H>>,
    pub(super) packer: &'a mut Packer,
    /// Maximum number of words of a new object.
    pub(super) most: usize,
    /// `true` if the last new object had more words, and was abandoned.
    pub(super) is_too_large: bool,
}

impl<H: Host, E: Environment> Rerun<'_, H, E> {
    pub(super) fn is_true(&mut self, object: Object<'_, H>) -> bool {
        let outcome = self.machine.run(self.program, object, self.environment);
        outcome.is_some_and(|outcome| outcome.is_true())
    }

    pub(super) fn delete(
        &mut self,
        current: &Rec<H>,
        unpacked: &mut UnpackBuffer,
    ) -> Change<Values<H>> {
        if self.is_true(LookupResult::new(current).first(unpacked)) {
            Change::Remove
        } else {
            Change::Keep
        }
    }

    /// Computes the replacement of the object. Sets `unchanged` to 1 if the object is replaced by
    /// itself.
    pub(super) fn replace(
        &mut self,
        current: &Rec<H>,
        unpacked: &mut UnpackBuffer,
        unchanged: &mut usize,
    ) -> Change<Values<H>> {
        let object = LookupResult::new(current).first(unpacked);
        match self.replacement(object, |new| record(current.key(), new.take())) {
            Replacement::None => Change::Keep,
            Replacement::Itself => {
                *unchanged = 1;
                Change::Keep
            }
            Replacement::New(record) => Change::Put(record),
        }
    }
}

impl<H: Host, E: Environment> Replace<H> for Rerun<'_, H, E> {
    fn replacement<T>(
        &mut self,
        object: Object<'_, H>,
        put: impl FnOnce(&mut NewObject<'_, RunTerm<'_, H>>) -> T,
    ) -> Replacement<T> {
        let Some(outcome) = self.machine.run(self.program, object, self.environment) else {
            return Replacement::None;
        };
        if outcome.as_object().is_some() {
            return Replacement::Itself;
        }
        let new = outcome.term();
        if !is_with_key_of(self.table, new, object) {
            return Replacement::None;
        }
        let zeros = self.table.zeros;
        let mut image = std::mem::replace(self.image, ImageBuilder::new(zeros)).recycle();
        let encoded = image.encode_object_within(new, self.most);
        self.is_too_large = encoded == Err(NoImage::TooLarge);
        if self.is_too_large {
            *self.image = image.recycle();
            return Replacement::None;
        }
        encoded.expect("a tuple");
        let result = put(&mut NewObject {
            packs: self.table.packs(),
            image: &mut image,
            packer: self.packer,
        });
        *self.image = image.recycle();
        Replacement::New(result)
    }
}

/// Returns `true` if a term is an object with the same key as `object`.
fn is_with_key_of<H: Host>(table: &Table<H>, new: RunTerm<'_, H>, object: Object<'_, H>) -> bool {
    let Kind::Tuple(arity) = new.kind() else {
        return false;
    };
    if arity <= table.key_index {
        return false;
    }
    let (mut bytes, mut own) = (Vec::new(), Vec::new());
    let key = object.element(table.key_index);
    let new_key = new.element(table.key_index);
    if let (Some(a), Some(b)) = (key.immediate(), new_key.immediate()) {
        return a == b;
    }
    table.key_bytes(new_key, &mut bytes);
    table.key_bytes(key, &mut own);
    bytes == own
}
