//! Fields of structs and variants: the code that destructures, encodes and decodes them.

use crate::attributes::Attributes;
use crate::code::Words;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

/// The fields of a struct or a variant.
pub(crate) struct Fields<'a> {
    /// Names in the generated code, and types.
    fields: Vec<(Ident, Type)>,
    /// Names in the type, if the fields have names.
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

    /// Returns the fixed length of all values with these fields, if each field has a fixed length.
    pub(crate) fn length(&self) -> TokenStream {
        let ats = &self.attributes.ats;
        if self.is_key {
            return TokenStream::new();
        }
        let types = self.fields.iter().map(|(_, kind)| kind);
        quote! {
            const LEN: ::core::option::Option<::core::primitive::usize> =
                #ats::sum_of_lengths(&[#(<#types as #ats::Value>::LEN),*]);
        }
    }

    /// Returns the pattern that binds each field to its name in the code; it is also the expression
    /// that constructs the value.
    pub(crate) fn pattern(&self) -> TokenStream {
        let names = self.fields.iter().map(|(name, _)| name);
        match &self.named {
            Some(named) => quote!({ #(#named: #names),* }),
            None if self.fields.is_empty() => quote!({}),
            None => quote!(( #(#names),* )),
        }
    }

    /// Returns the expression that the pattern destructures: the value itself, for copies of its
    /// fields, if references to them are impossible.
    pub(crate) fn whole(&self) -> TokenStream {
        if self.attributes.is_packed {
            quote!(*self)
        } else {
            quote!(self)
        }
    }

    /// Returns the reference to a field.
    fn reference(&self, name: &Ident) -> TokenStream {
        if self.attributes.is_packed {
            quote!(&#name)
        } else {
            quote!(#name)
        }
    }

    /// Returns the statements that encode the fields.
    pub(crate) fn encode(&self) -> TokenStream {
        let ats = &self.attributes.ats;
        let each = self
            .fields
            .iter()
            .map(|(name, kind)| encode_one(ats, &self.reference(name), kind, self.is_key));
        each.collect()
    }

    /// Returns the expression for the fields of a key as words, if they are short.
    pub(crate) fn as_words(&self) -> TokenStream {
        let ats = &self.attributes.ats;
        let each = self.fields.iter().map(|(name, kind)| {
            let reference = self.reference(name);
            quote! {
                let __ats_words = __ats_words
                    .followed_by(<#kind as #ats::AsKey<#kind>>::as_words(#reference)?)?;
            }
        });
        quote! {
            let __ats_words = #ats::ShortKey::of(&[])?;
            #(#each)*
            ::core::option::Option::Some(__ats_words)
        }
    }

    /// Returns the expression that is `true` if each field is proven.
    pub(crate) fn is_proven(&self) -> TokenStream {
        let ats = &self.attributes.ats;
        let each = self.fields.iter().map(|(name, kind)| {
            let reference = self.reference(name);
            if self.is_key {
                quote!(<#kind as #ats::AsKey<#kind>>::is_proven(#reference))
            } else {
                quote!(<#kind as #ats::AsValue<#kind>>::is_proven(#reference))
            }
        });
        quote!(true #(&& #each)*)
    }

    /// Returns the expression that decodes the fields and constructs the value, if they are there.
    pub(crate) fn decode(&self, constructor: &TokenStream) -> TokenStream {
        let ats = &self.attributes.ats;
        let statements = self.fields.iter().map(|(name, kind)| {
            let read = read_one(ats, kind, self.is_key);
            quote!(let #name = #read?;)
        });
        let pattern = self.pattern();
        quote!({
            #(#statements)*
            ::core::option::Option::Some(#constructor #pattern)
        })
    }
}

/// Returns the statement that encodes the target of a reference.
pub(crate) fn encode_one(
    ats: &TokenStream,
    value: &TokenStream,
    kind: &Type,
    is_key: bool,
) -> TokenStream {
    if is_key {
        quote!(<#kind as #ats::AsKey<#kind>>::encode(#value, __ats_bytes);)
    } else {
        quote!(__ats_bytes.push_part::<#kind>(#value);)
    }
}

/// Returns the expression that decodes a value, if there is one.
pub(crate) fn read_one(ats: &TokenStream, kind: &Type, is_key: bool) -> TokenStream {
    if is_key {
        quote!(<#kind as #ats::Key>::decode(__ats_reader))
    } else {
        quote!(#ats::take_part::<#kind>(__ats_reader))
    }
}
