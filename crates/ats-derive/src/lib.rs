//! Derive macros of the crate `ats`: keys and values of typed maps.
//!
//! They are used by way of that crate, with its feature `derive`.

mod fields;

use fields::{Fields, encode, read};
use proc_macro::TokenStream as Output;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Generics, Ident, parse_macro_input, parse_quote};

/// Makes a type a `Key` by its parts, whose types are keys. A struct has the order of its fields,
/// as they stand there. An enum has the order of its variants, and those of the same variant have
/// that of its fields. So the order is that which `#[derive(Ord)]` gives.
#[proc_macro_derive(Key)]
pub fn derive_key(input: Output) -> Output {
    derive(&parse_macro_input!(input), &KEY)
}

/// Makes a type a `Value` by its parts, whose types are values. A value of an enum is the number of
/// its variant, counted from 0, and its fields. Values that a map on disk keeps are read again if
/// their types, and the order of fields and variants, stay as they are; a new variant may be added
/// behind the others.
#[proc_macro_derive(Value)]
pub fn derive_value(input: Output) -> Output {
    derive(&parse_macro_input!(input), &VALUE)
}

/// The words of a trait that is derived.
struct Words {
    /// The trait that reads, and the one that writes.
    reads: &'static str,
    writes: &'static str,
    bytes: &'static str,
    is_key: bool,
}

const KEY: Words = Words {
    reads: "Key",
    writes: "AsKey",
    bytes: "KeyBytes",
    is_key: true,
};

const VALUE: Words = Words {
    reads: "Value",
    writes: "AsValue",
    bytes: "ValueBytes",
    is_key: false,
};

fn derive(input: &DeriveInput, words: &Words) -> Output {
    implementation(input, words)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn implementation(input: &DeriveInput, words: &Words) -> Result<TokenStream, Error> {
    let ident = |name: &str| Ident::new(name, Span::call_site());
    let (reads, writes, bytes) = (ident(words.reads), ident(words.writes), ident(words.bytes));
    let name = &input.ident;
    let (encoding, decoding) = match &input.data {
        Data::Struct(data) => of_struct(&Fields::of(&data.fields), words),
        Data::Enum(data) => of_enum(data, input, words)?,
        Data::Union(_) => {
            let text = format!("a union cannot be a {reads}: nothing tells which field it has");
            return Err(Error::new(name.span(), text));
        }
    };
    let generics = bounded(&input.generics, &reads);
    let (implements, types, bounds) = generics.split_for_impl();
    let itself = quote!(#name #types);
    let length = match &input.data {
        Data::Struct(data) => Fields::of(&data.fields).length(),
        _ => TokenStream::new(),
    };
    let reading = match words.is_key {
        true => quote! {
            fn decode(
                reader: &mut ::ats::map::KeyReader<'_>,
            ) -> ::core::option::Option<Self> {
                #decoding
            }
        },
        false => quote! {
            #length

            fn decode(bytes: &[u8]) -> ::core::option::Option<Self> {
                let mut rest = bytes;
                let reader = &mut rest;
                let value: Self = #decoding?;
                if !rest.is_empty() {
                    return ::core::option::Option::None;
                }
                ::core::option::Option::Some(value)
            }
        },
    };
    Ok(quote! {
        #[automatically_derived]
        impl #implements ::ats::map::#writes<#itself> for #itself #bounds {
            fn encode(&self, bytes: &mut ::ats::map::#bytes) {
                let _ = &bytes;
                #encoding
            }
        }

        #[automatically_derived]
        impl #implements ::ats::map::#reads for #itself #bounds {
            #reading
        }
    })
}

/// Generics whose types have the trait.
fn bounded(generics: &Generics, reads: &Ident) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::ats::map::#reads));
    }
    generics
}

/// The statements that write a struct, and the expression that reads it.
fn of_struct(fields: &Fields, words: &Words) -> (TokenStream, TokenStream) {
    let pattern = fields.pattern();
    let encoded = encode(fields, words.is_key);
    let built = read(&quote!(Self), fields, words.is_key);
    let encoding = quote! {
        let Self #pattern = self;
        #encoded
    };
    (encoding, built)
}

/// The statements that write an enum, and the expression that reads it: the number of the variant,
/// then its fields.
fn of_enum(
    data: &syn::DataEnum,
    input: &DeriveInput,
    words: &Words,
) -> Result<(TokenStream, TokenStream), Error> {
    for variant in &data.variants {
        if let Some((_, number)) = &variant.discriminant {
            let text = "the order is that of the variants, so they can have no numbers";
            return Err(Error::new_spanned(number, text));
        }
    }
    if data.variants.is_empty() {
        let text = format!(
            "an enum without variants has no value that is a {}",
            words.reads
        );
        return Err(Error::new(input.ident.span(), text));
    }
    let (mut writing, mut reading) = (Vec::new(), Vec::new());
    for (number, variant) in data.variants.iter().enumerate() {
        let number = number as u32;
        let (name, fields) = (&variant.ident, Fields::of(&variant.fields));
        let (pattern, encoded) = (fields.pattern(), encode(&fields, words.is_key));
        let head = encode_number(number, words.is_key);
        writing.push(quote!(Self::#name #pattern => { #head #encoded }));
        let built = read(&quote!(Self::#name), &fields, words.is_key);
        reading.push(quote!(#number => #built,));
    }
    let number = fields::read_one(&parse_quote!(u32), words.is_key);
    let encoding = quote!(match self { #(#writing)* });
    let decoding = quote! {
        match #number? {
            #(#reading)*
            _ => ::core::option::Option::None,
        }
    };
    Ok((encoding, decoding))
}

fn encode_number(number: u32, is_key: bool) -> TokenStream {
    fields::encode_one(&quote!(&#number), &parse_quote!(u32), is_key)
}
