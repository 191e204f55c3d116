//! Decoding of values of `serde`.

use super::error::Error;
use super::tags::{
    BYTES, CHAR, DEPTH, END, F32, F64, FALSE, I128, MAP, NEGATED, NONE, SEQ, SHORT, SMALL, SOME,
    TEXT, TRUE, U128, UNIT, UNSIGNED,
};
use ::serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use ::serde::forward_to_deserialize_any;

/// A reader of the bytes of values.
pub(super) struct Reader<'de> {
    rest: &'de [u8],
    /// Number of levels that may still be opened.
    depth: u32,
}

/// Reads a value from all of its bytes.
pub(super) fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
    let mut reader = Reader {
        rest: bytes,
        depth: DEPTH,
    };
    let value = T::deserialize(&mut reader)?;
    match reader.rest {
        [] => Ok(value),
        _ => Err(Error("there are bytes behind the value".into())),
    }
}

fn ends() -> Error {
    Error("the bytes end before the value".into())
}

impl<'de> Reader<'de> {
    fn peek(&self) -> Result<u8, Error> {
        self.rest.first().copied().ok_or_else(ends)
    }

    fn skip(&mut self) {
        self.rest = &self.rest[1..];
    }

    fn take(&mut self, len: usize) -> Result<&'de [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(ends)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(ends)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a number of `len` bytes.
    fn number(&mut self, len: usize) -> Result<u64, Error> {
        let mut number = [0; size_of::<u64>()];
        number[..len].copy_from_slice(self.take(len)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Reads a length, and that many bytes.
    fn counted(&mut self) -> Result<&'de [u8], Error> {
        let len = u64::deserialize(&mut *self)?;
        self.take(len.try_into().map_err(|_| ends())?)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let less = self.depth.checked_sub(1);
        self.depth = less.ok_or_else(|| Error(format!("it is nested {DEPTH} times")))?;
        let value = read(self)?;
        self.depth += 1;
        Ok(value)
    }

    /// Reads a nested value, and the tag `END` after it.
    fn ended<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let value = self.nested(read)?;
        match self.array()? {
            [END] => Ok(value),
            [_] => Err(Error("there are more parts than the type has".into())),
        }
    }

    fn text<V: Visitor<'de>>(text: &'de [u8], visitor: V) -> Result<V::Value, Error> {
        match std::str::from_utf8(text) {
            Ok(text) => visitor.visit_borrowed_str(text),
            Err(_) => Err(Error::invalid_value(Unexpected::Bytes(text), &visitor)),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let tag = self.peek()?;
        self.skip();
        match tag {
            SMALL.. => visitor.visit_u64((tag - SMALL).into()),
            SHORT..SMALL => Reader::text(self.take((tag - SHORT).into())?, visitor),
            NONE => visitor.visit_none(),
            SOME => self.nested(|reader| visitor.visit_some(reader)),
            UNIT => visitor.visit_unit(),
            FALSE => visitor.visit_bool(false),
            TRUE => visitor.visit_bool(true),
            UNSIGNED..NEGATED => visitor.visit_u64(self.number(1 << (tag - UNSIGNED))?),
            NEGATED..U128 => {
                let number = self.number(1 << (tag - NEGATED))?;
                visitor.visit_i64(!number.cast_signed())
            }
            U128 => visitor.visit_u128(u128::from_le_bytes(self.array()?)),
            I128 => visitor.visit_i128(i128::from_le_bytes(self.array()?)),
            F32 => visitor.visit_f32(f32::from_le_bytes(self.array()?)),
            F64 => visitor.visit_f64(f64::from_le_bytes(self.array()?)),
            CHAR => match char::from_u32(u32::from_le_bytes(self.array()?)) {
                Some(char) => visitor.visit_char(char),
                None => Err(Error("there is no such character".into())),
            },
            TEXT => Reader::text(self.counted()?, visitor),
            BYTES => visitor.visit_borrowed_bytes(self.counted()?),
            SEQ => self.ended(|reader| visitor.visit_seq(Parts(reader))),
            MAP => self.ended(|reader| visitor.visit_map(Parts(reader))),
            _ => Err(Error(format!("nothing has the tag {tag}"))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek()? {
            NONE | SOME | UNIT => self.deserialize_any(visitor),
            _ => self.nested(|reader| visitor.visit_some(reader)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.peek()? {
            MAP => {
                self.skip();
                self.ended(|reader| visitor.visit_enum(Parts(reader)))
            }
            _ => visitor.visit_enum(Name(self)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// The parts before a tag `END`.
struct Parts<'r, 'de>(&'r mut Reader<'de>);

impl<'de> Parts<'_, 'de> {
    fn next<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        match self.0.peek()? {
            END => Ok(None),
            _ => seed.deserialize(&mut *self.0).map(Some),
        }
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next(seed)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.0)
    }
}

/// Reads a variant as its name and its content.
impl<'de> EnumAccess<'de> for Parts<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        <()>::deserialize(self.0)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }
}

/// A variant without content, which is only a name.
struct Name<'r, 'de>(&'r mut Reader<'de>);

impl<'de> EnumAccess<'de> for Name<'_, 'de> {
    type Error = Error;
    type Variant = Unit;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Unit), Error> {
        Ok((seed.deserialize(self.0)?, Unit))
    }
}

struct Unit;

impl Unit {
    fn refuse<T>(expected: &'static str) -> Result<T, Error> {
        Err(Error::invalid_type(Unexpected::UnitVariant, &expected))
    }
}

impl<'de> VariantAccess<'de> for Unit {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _seed: S) -> Result<S::Value, Error> {
        Unit::refuse("newtype variant")
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Error> {
        Unit::refuse("tuple variant")
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        Unit::refuse("struct variant")
    }
}
