//! Fields of structs and variants: the code that takes them apart, writes them, and reads them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

/// The fields of a struct or a variant.
pub(crate) struct Fields {
    /// The names in the code, and the types.
    fields: Vec<(Ident, Type)>,
    /// The names in the type, if they have some.
    named: Option<Vec<Ident>>,
}

impl Fields {
    pub(crate) fn of(fields: &syn::Fields) -> Self {
        let own =
            |(at, field): (usize, &syn::Field)| (format_ident!("field_{at}"), field.ty.clone());
        let named = matches!(fields, syn::Fields::Named(_));
        Fields {
            fields: fields.iter().enumerate().map(own).collect(),
            named: named.then(|| {
                fields
                    .iter()
                    .filter_map(|field| field.ident.clone())
                    .collect()
            }),
        }
    }

    /// The length of all values that have these fields, if those of each field have one.
    pub(crate) fn length(&self) -> TokenStream {
        let types = self.fields.iter().map(|(_, kind)| kind);
        quote! {
            const LEN: ::core::option::Option<usize> =
                ::ats::map::sum_of_lengths(&[#(<#types as ::ats::map::Value>::LEN),*]);
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
}

/// The statements that write the fields.
pub(crate) fn encode(fields: &Fields, is_key: bool) -> TokenStream {
    let each = fields.fields.iter();
    each.map(|(name, kind)| encode_one(&quote!(#name), kind, is_key))
        .collect()
}

/// The statement that writes what a reference leads to.
pub(crate) fn encode_one(value: &TokenStream, kind: &Type, is_key: bool) -> TokenStream {
    match is_key {
        true => quote!(<#kind as ::ats::map::AsKey<#kind>>::encode(#value, bytes);),
        false => quote!(bytes.push_part::<#kind>(#value);),
    }
}

/// The expression that reads the fields, and puts them together.
pub(crate) fn read(constructor: &TokenStream, fields: &Fields, is_key: bool) -> TokenStream {
    let statements = fields.fields.iter().map(|(name, kind)| {
        let read = read_one(kind, is_key);
        quote!(let #name = #read?;)
    });
    let pattern = fields.pattern();
    quote!({
        #(#statements)*
        ::core::option::Option::Some(#constructor #pattern)
    })
}

/// The expression that reads a value, if it is there.
pub(crate) fn read_one(kind: &Type, is_key: bool) -> TokenStream {
    match is_key {
        true => quote!(<#kind as ::ats::map::Key>::decode(reader)),
        false => quote!(::ats::map::take_part::<#kind>(reader)),
    }
}
