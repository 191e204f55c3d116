//! Derive macros of the crate `ats`: keys and values of typed maps.
//!
//! They are used through that crate, with its feature `derive`.

mod attributes;
mod bounds;
mod code;
mod fields;
mod variants;

use attributes::Attributes;
use code::{Code, KEY, VALUE, Words};
use fields::Fields;
use proc_macro::TokenStream as Output;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Ident, parse_macro_input};

/// Derives `Key` for a type whose parts are keys. A struct is ordered by its fields, in declaration
/// order. An enum is ordered by its variants, and within a variant by its fields. So the order is
/// that of `#[derive(Ord)]`, even if variants have numbers.
///
/// Type parameters that fields use outside of `PhantomData` must be keys, and so must their
/// associated types. `#[ats(crate = "path::to::ats")]` is the path of the crate `ats`, if it has
/// another name or comes from another crate.
#[proc_macro_derive(Key, attributes(ats))]
pub fn derive_key(input: Output) -> Output {
    derive(&parse_macro_input!(input), &KEY)
}

/// Derives `Value` for a type whose parts are values. A value of an enum is the index of its
/// variant, counted from 0, and its fields. Values in a map on disk can be decoded as long as their
/// types, and the order of fields and variants, do not change; new variants may be appended.
///
/// Type parameters that fields use outside of `PhantomData` must be values, and so must their
/// associated types. `#[ats(crate = "path::to::ats")]` is the path of the crate `ats`, if it has
/// another name or comes from another crate.
#[proc_macro_derive(Value, attributes(ats))]
pub fn derive_value(input: Output) -> Output {
    derive(&parse_macro_input!(input), &VALUE)
}

fn derive(input: &DeriveInput, words: &Words) -> Output {
    implementation(input, words)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn implementation(input: &DeriveInput, words: &Words) -> Result<TokenStream, Error> {
    let attributes = Attributes::of(input)?;
    let ident = |name: &str| Ident::new(name, Span::call_site());
    let (reads, writes, bytes) = (ident(words.reads), ident(words.writes), ident(words.bytes));
    let (name, ats) = (&input.ident, &attributes.ats);
    let code = match &input.data {
        Data::Struct(data) => of_struct(&Fields::of(&data.fields, &attributes, words)),
        Data::Enum(data) => variants::of_enum(data, &attributes, words),
        Data::Union(_) => {
            let text = format!("a union cannot be a {reads}: nothing tells which field it has");
            return Err(Error::new(name.span(), text));
        }
    };
    let generics = bounds::bounded(input, &quote!(#ats::#reads));
    let (implements, types, bounds) = generics.split_for_impl();
    let itself = quote!(#name #types);
    let (length, as_words) = match &input.data {
        Data::Struct(data) => {
            let fields = Fields::of(&data.fields, &attributes, words);
            (fields.length(), as_words(&fields, words, ats))
        }
        _ => (TokenStream::new(), TokenStream::new()),
    };
    let Code {
        encode,
        is_proven,
        decode,
    } = code;
    let reading = if words.is_key {
        quote! {
            fn decode(
                __ats_reader: &mut #ats::KeyReader<'_>,
            ) -> ::core::option::Option<Self> {
                #decode
            }
        }
    } else {
        quote! {
            #length

            fn decode(__ats_bytes: &[::core::primitive::u8]) -> ::core::option::Option<Self> {
                let mut __ats_rest = __ats_bytes;
                let __ats_reader = &mut __ats_rest;
                let __ats_value: ::core::option::Option<Self> = #decode;
                match __ats_rest {
                    [] => __ats_value,
                    _ => ::core::option::Option::None,
                }
            }
        }
    };
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #implements #ats::#writes<#itself> for #itself #bounds {
            fn encode(&self, __ats_bytes: &mut #ats::#bytes) {
                #encode
            }

            #as_words

            fn is_proven(&self) -> ::core::primitive::bool {
                #is_proven
            }
        }

        #[automatically_derived]
        #[allow(deprecated)]
        impl #implements #ats::#reads for #itself #bounds {
            #reading
        }
    })
}

/// Returns the function that gives the bytes of a struct as words, if it is a key.
fn as_words(fields: &Fields, words: &Words, ats: &TokenStream) -> TokenStream {
    if !words.is_key {
        return TokenStream::new();
    }
    let (pattern, whole, as_words) = (fields.pattern(), fields.whole(), fields.as_words());
    quote! {
        #[inline]
        fn as_words(&self) -> ::core::option::Option<#ats::ShortKey> {
            let Self #pattern = #whole;
            #as_words
        }
    }
}

fn of_struct(fields: &Fields) -> Code {
    let (pattern, encode, is_proven) = (fields.pattern(), fields.encode(), fields.is_proven());
    let (whole, decode) = (fields.whole(), fields.decode(&quote!(Self)));
    Code {
        encode: quote! {
            let Self #pattern = #whole;
            #encode
        },
        is_proven: quote! {
            let Self #pattern = #whole;
            #is_proven
        },
        decode,
    }
}
