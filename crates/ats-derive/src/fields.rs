//! Fields of structs and variants: the code that takes them apart, writes them, and reads them.

use crate::attributes::Attributes;
use crate::code::Words;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

/// The fields of a struct or a variant.
pub(crate) struct Fields<'a> {
    /// The names in the code, and the types.
    fields: Vec<(Ident, Type)>,
    /// The names in the type, if they have some.
    named: Option<Vec<Ident>>,
    attributes: &'a Attributes,
    is_key: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(fields: &syn::Fields, attributes: &'a Attributes, words: &Words) -> Self {
        let own = |(at, field): (usize, &syn::Field)| {
            (format_ident!("__ats_field_{at}"), field.ty.clone())
        };
        let named = matches!(fields, syn::Fields::Named(_));
        Fields {
            fields: fields.iter().enumerate().map(own).collect(),
            named: named.then(|| {
                fields
                    .iter()
                    .filter_map(|field| field.ident.clone())
                    .collect()
            }),
            attributes,
            is_key: words.is_key,
        }
    }

    /// The length of all values that have these fields, if those of each field have one.
    pub(crate) fn length(&self) -> TokenStream {
        let map = &self.attributes.map;
        if self.is_key {
            return TokenStream::new();
        }
        let types = self.fields.iter().map(|(_, kind)| kind);
        quote! {
            const LEN: ::core::option::Option<::core::primitive::usize> =
                #map::sum_of_lengths(&[#(<#types as #map::Value>::LEN),*]);
        }
    }

    /// The pattern that gives each field its name in the code; also the expression that puts them
    /// together.
    pub(crate) fn pattern(&self) -> TokenStream {
        let names = self.fields.iter().map(|(name, _)| name);
        match &self.named {
            Some(named) => quote!({ #(#named: #names),* }),
            None if self.fields.is_empty() => quote!({}),
            None => quote!(( #(#names),* )),
        }
    }

    /// The struct that the pattern takes apart: itself, for copies of its fields, if nothing can
    /// refer to them.
    pub(crate) fn whole(&self) -> TokenStream {
        match self.attributes.is_packed {
            true => quote!(*self),
            false => quote!(self),
        }
    }

    /// The reference to a field.
    fn reference(&self, name: &Ident) -> TokenStream {
        match self.attributes.is_packed {
            true => quote!(&#name),
            false => quote!(#name),
        }
    }

    /// The statements that write the fields.
    pub(crate) fn encode(&self) -> TokenStream {
        let map = &self.attributes.map;
        let each = self
            .fields
            .iter()
            .map(|(name, kind)| encode_one(map, &self.reference(name), kind, self.is_key));
        each.collect()
    }

    /// The expression that tells if each field is proven.
    pub(crate) fn is_proven(&self) -> TokenStream {
        let map = &self.attributes.map;
        let each = self.fields.iter().map(|(name, kind)| {
            let reference = self.reference(name);
            match self.is_key {
                true => quote!(<#kind as #map::AsKey<#kind>>::is_proven(#reference)),
                false => quote!(<#kind as #map::AsValue<#kind>>::is_proven(#reference)),
            }
        });
        quote!(true #(&& #each)*)
    }

    /// The expression that reads the fields, and puts them together, if they are there.
    pub(crate) fn decode(&self, constructor: &TokenStream) -> TokenStream {
        let map = &self.attributes.map;
        let statements = self.fields.iter().map(|(name, kind)| {
            let read = read_one(map, kind, self.is_key);
            quote!(let #name = #read?;)
        });
        let pattern = self.pattern();
        quote!({
            #(#statements)*
            ::core::option::Option::Some(#constructor #pattern)
        })
    }
}

/// The statement that writes what a reference leads to.
pub(crate) fn encode_one(
    map: &TokenStream,
    value: &TokenStream,
    kind: &Type,
    is_key: bool,
) -> TokenStream {
    match is_key {
        true => quote!(<#kind as #map::AsKey<#kind>>::encode(#value, __ats_bytes);),
        false => quote!(__ats_bytes.push_part::<#kind>(#value);),
    }
}

/// The expression that reads a value, if it is there.
pub(crate) fn read_one(map: &TokenStream, kind: &Type, is_key: bool) -> TokenStream {
    match is_key {
        true => quote!(<#kind as #map::Key>::decode(__ats_reader)),
        false => quote!(#map::take_part::<#kind>(__ats_reader)),
    }
}
