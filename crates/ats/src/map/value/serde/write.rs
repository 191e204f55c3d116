//! Encoding of values of `serde`.

use super::error::Error;
use super::tags::{
    BYTES, CHAR, DEPTH, END, F32, F64, FALSE, I128, MAP, NEGATED, NONE, SEQ, SHORT, SMALL, SOME,
    TEXT, TRUE, U128, UNIT, UNSIGNED,
};
use crate::map::value::ValueBytes;
use ::serde::ser::{self, Serialize, Serializer};

/// A writer of the bytes of values.
pub(super) struct Writer<'a> {
    bytes: &'a mut ValueBytes,
    /// Number of levels that may still be opened.
    depth: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut ValueBytes) -> Self {
        Writer {
            bytes,
            depth: DEPTH,
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(&[tag]);
        self.bytes.push(bytes);
    }

    fn number(&mut self, tag: u8, number: u64) {
        let bytes = number.to_le_bytes();
        match number {
            0..0x100 => self.tagged(tag, &bytes[..1]),
            0x100..0x1_0000 => self.tagged(tag + 1, &bytes[..2]),
            0x1_0000..0x1_0000_0000 => self.tagged(tag + 2, &bytes[..4]),
            _ => self.tagged(tag + 3, &bytes),
        }
    }

    fn unsigned(&mut self, number: u64) {
        match number {
            0..0x80 => self.bytes.push(&[SMALL + number as u8]),
            _ => self.number(UNSIGNED, number),
        }
    }

    fn text(&mut self, text: &str) {
        match text.len() {
            len @ 0..0x40 => self.bytes.push(&[SHORT + len as u8]),
            len => {
                self.bytes.push(&[TEXT]);
                self.unsigned(len as u64);
            }
        }
        self.bytes.push(text.as_bytes());
    }

    fn enter(&mut self) -> Result<(), Error> {
        let less = self.depth.checked_sub(1);
        self.depth = less.ok_or_else(|| Error(format!("it is nested {DEPTH} times")))?;
        Ok(())
    }

    /// Begins a nested value, which the tag `END` will end.
    fn begin(&mut self, tag: u8) -> Result<(), Error> {
        self.enter()?;
        self.bytes.push(&[tag]);
        Ok(())
    }

    fn end(&mut self) {
        self.depth += 1;
        self.bytes.push(&[END]);
    }
}

impl<'w, 'a> Serializer for &'w mut Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'w, 'a>;
    type SerializeTuple = Parts<'w, 'a>;
    type SerializeTupleStruct = Parts<'w, 'a>;
    type SerializeTupleVariant = Parts<'w, 'a>;
    type SerializeMap = Parts<'w, 'a>;
    type SerializeStruct = Parts<'w, 'a>;
    type SerializeStructVariant = Parts<'w, 'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.bytes.push(&[if value { TRUE } else { FALSE }]);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        match value {
            0.. => self.unsigned(value.cast_unsigned()),
            _ => self.number(NEGATED, (!value).cast_unsigned()),
        }
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match value.try_into() {
            Ok(value) => self.serialize_i64(value)?,
            Err(_) => self.tagged(I128, &value.to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.unsigned(value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match value.try_into() {
            Ok(value) => self.unsigned(value),
            Err(_) => self.tagged(U128, &value.to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.tagged(F32, &value.to_le_bytes());
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.tagged(F64, &value.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.tagged(CHAR, &u32::from(value).to_le_bytes());
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.bytes.push(&[BYTES]);
        self.unsigned(value.len() as u64);
        self.bytes.push(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.bytes.push(&[NONE]);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        let at = self.bytes.bytes.len();
        self.enter()?;
        value.serialize(&mut *self)?;
        self.depth += 1;
        if let Some(&(NONE | UNIT | SOME)) = self.bytes.bytes.get(at) {
            self.bytes.bytes.insert(at, SOME);
        }
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.bytes.push(&[UNIT]);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin(MAP)?;
        self.text(variant);
        value.serialize(&mut *self)?;
        self.end();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, SEQ, None)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, SEQ, None)
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, SEQ, None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, SEQ, Some(variant))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, MAP, None)
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, MAP, None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Parts<'w, 'a>, Error> {
        Parts::new(self, MAP, Some(variant))
    }
}

/// A sequence or a map that is being written.
pub(super) struct Parts<'w, 'a> {
    writer: &'w mut Writer<'a>,
    is_variant: bool,
}

impl<'w, 'a> Parts<'w, 'a> {
    fn new(writer: &'w mut Writer<'a>, tag: u8, variant: Option<&str>) -> Result<Self, Error> {
        if let Some(variant) = variant {
            writer.begin(MAP)?;
            writer.text(variant);
        }
        writer.begin(tag)?;
        Ok(Parts {
            writer,
            is_variant: variant.is_some(),
        })
    }

    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn finish(self) {
        self.writer.end();
        if self.is_variant {
            self.writer.end();
        }
    }
}

macro_rules! sequences {
    ($($kind:ident $push:ident;)*) => {$(
        impl ser::$kind for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.part(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

sequences! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! structs {
    ($($kind:ident)*) => {$(
        impl ser::$kind for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.writer.text(key);
                self.part(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

structs! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.part(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}
