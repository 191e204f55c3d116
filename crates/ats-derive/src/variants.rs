//! Enums: the number of the variant, then its fields.

use crate::attributes::Attributes;
use crate::code::{Code, Words};
use crate::fields::{Fields, encode_one, read_one};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{DataEnum, Type, parse_quote};

/// Generates the code of an enum.
pub(crate) fn of_enum(data: &DataEnum, attributes: &Attributes, words: &Words) -> Code {
    let ats = &attributes.ats;
    let (kind, numbers) = numbers(data, attributes, words);
    let (mut writing, mut proving, mut reading) = (Vec::new(), Vec::new(), Vec::new());
    for (number, variant) in numbers.iter().zip(&data.variants) {
        let (name, fields) = (
            &variant.ident,
            Fields::of(&variant.fields, attributes, words),
        );
        let (pattern, encode, is_proven) = (fields.pattern(), fields.encode(), fields.is_proven());
        let head = encode_one(ats, &quote!(&#number), &kind, words.is_key);
        writing.push(quote!(Self::#name #pattern => { #head #encode }));
        proving.push(quote!(Self::#name #pattern => { #is_proven }));
        let built = fields.decode(&quote!(Self::#name));
        reading.push(quote! {
            ::core::option::Option::Some(__ats_number) if __ats_number == #number => #built
        });
    }
    // A reference to an enum without variants can only be matched by its target.
    let whole = if numbers.is_empty() {
        quote!(*self)
    } else {
        quote!(self)
    };
    let number = read_one(ats, &kind, words.is_key);
    Code {
        encode: quote!(match #whole { #(#writing)* }),
        is_proven: quote!(match #whole { #(#proving)* }),
        decode: quote! {
            match #number {
                #(#reading)*
                _ => ::core::option::Option::None,
            }
        },
    }
}

/// Returns the numbers that represent variants, and their type: their indices, or for keys the
/// numbers that the program gives them, because those define the order.
fn numbers(data: &DataEnum, attributes: &Attributes, words: &Words) -> (Type, Vec<TokenStream>) {
    let has_numbers = data.variants.iter().any(|it| it.discriminant.is_some());
    if !words.is_key || !has_numbers {
        let indices = (0..data.variants.len() as u32).map(|index| quote!(#index));
        return (parse_quote!(::core::primitive::u32), indices.collect());
    }
    let kind: Type = match &attributes.number {
        Some(kind) => parse_quote!(::core::primitive::#kind),
        None => parse_quote!(::core::primitive::isize),
    };
    let (mut base, mut behind) = (quote!(0), 0);
    let numbers = data.variants.iter().map(|variant| {
        if let Some((_, number)) = &variant.discriminant {
            (base, behind) = (quote!(#number), 0);
        }
        let more = Literal::usize_unsuffixed(behind);
        behind += 1;
        quote!({
            const __ATS_NUMBER: #kind = #base;
            __ATS_NUMBER + #more
        })
    });
    let numbers = numbers.collect();
    (kind, numbers)
}
