//! Bounds of the generics of a type, as its fields need them.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Data, DeriveInput, GenericArgument, Generics, Ident, Path, PathArguments, ReturnType, Type,
    TypeParamBound, parse_quote,
};

/// Returns the generics of a type, with a bound by the trait for those that fields use: type
/// parameters outside of `PhantomData`, and their associated types.
pub(crate) fn bounded(input: &DeriveInput, reads: &TokenStream) -> Generics {
    let mut generics = input.generics.clone();
    let mut found = Found {
        parameters: generics.type_params().map(|it| it.ident.clone()).collect(),
        types: Vec::new(),
    };
    let fields: Vec<&syn::Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|it| &it.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let all = fields.into_iter().flatten();
    all.for_each(|field| found.look_at(&field.ty));
    if !found.types.is_empty() {
        let clause = generics.make_where_clause();
        for kind in &found.types {
            clause.predicates.push(parse_quote!(#kind: #reads));
        }
    }
    generics
}

/// Type parameters, and the types bounded because of them.
struct Found {
    parameters: Vec<Ident>,
    types: Vec<TokenStream>,
}

impl Found {
    fn add(&mut self, kind: &impl ToTokens) {
        let kind = kind.to_token_stream();
        let text = kind.to_string();
        if self.types.iter().all(|other| other.to_string() != text) {
            self.types.push(kind);
        }
    }

    fn is_parameter(&self, ident: &Ident) -> bool {
        self.parameters.contains(ident)
    }

    /// Returns `true` if a type contains a parameter.
    fn has_parameter(&self, tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => self.is_parameter(&ident),
            TokenTree::Group(group) => self.has_parameter(group.stream()),
            _ => false,
        })
    }

    fn look_at(&mut self, kind: &Type) {
        match kind {
            Type::Path(path) if path.qself.is_none() => self.look_at_path(&path.path, kind),
            Type::Path(path) if self.has_parameter(path.to_token_stream()) => self.add(kind),
            Type::Array(array) => self.look_at(&array.elem),
            Type::Group(group) => self.look_at(&group.elem),
            Type::Paren(paren) => self.look_at(&paren.elem),
            Type::Ptr(pointer) => self.look_at(&pointer.elem),
            Type::Reference(reference) => self.look_at(&reference.elem),
            Type::Slice(slice) => self.look_at(&slice.elem),
            Type::Tuple(tuple) => tuple.elems.iter().for_each(|kind| self.look_at(kind)),
            Type::Macro(call) => self.look_at_tokens(call.mac.tokens.clone()),
            Type::TraitObject(object) => {
                for bound in &object.bounds {
                    if let TypeParamBound::Trait(bound) = bound {
                        self.look_at_arguments(&bound.path);
                    }
                }
            }
            _ => {}
        }
    }

    fn look_at_path(&mut self, path: &Path, kind: &Type) {
        let (first, last) = (path.segments.first(), path.segments.last());
        if last.is_some_and(|last| last.ident == "PhantomData") {
            return;
        }
        if path.leading_colon.is_none() && first.is_some_and(|it| self.is_parameter(&it.ident)) {
            self.add(kind);
        }
        self.look_at_arguments(path);
    }

    fn look_at_arguments(&mut self, path: &Path) {
        for segment in &path.segments {
            match &segment.arguments {
                PathArguments::None => {}
                PathArguments::AngleBracketed(arguments) => {
                    for argument in &arguments.args {
                        match argument {
                            GenericArgument::Type(kind) => self.look_at(kind),
                            GenericArgument::AssocType(assigned) => self.look_at(&assigned.ty),
                            _ => {}
                        }
                    }
                }
                PathArguments::Parenthesized(arguments) => {
                    arguments.inputs.iter().for_each(|kind| self.look_at(kind));
                    if let ReturnType::Type(_, kind) = &arguments.output {
                        self.look_at(kind);
                    }
                }
            }
        }
    }

    /// Bounds the parameters in the arguments of a macro, which may have any form.
    fn look_at_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if self.is_parameter(&ident) => {
                    self.add(&ident);
                }
                TokenTree::Group(group) => self.look_at_tokens(group.stream()),
                _ => {}
            }
        }
    }
}
