//! Attributes of the type for which a trait is derived.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Ident, LitStr, Path};

/// The attributes that the generated code depends on.
pub(crate) struct Attributes {
    /// The path of the crate `ats`.
    pub(crate) ats: TokenStream,
    /// `true` for a packed type, whose fields may be unaligned, so that references to them are
    /// impossible.
    pub(crate) is_packed: bool,
    /// The type of the variants' numbers.
    pub(crate) number: Option<Ident>,
}

impl Attributes {
    pub(crate) fn of(input: &DeriveInput) -> Result<Self, Error> {
        refuse_inside(&input.data)?;
        let mut attributes = Attributes {
            ats: quote!(::ats),
            is_packed: false,
            number: None,
        };
        for attribute in &input.attrs {
            if attribute.path().is_ident("ats") {
                attributes.read(attribute)?;
            } else if attribute.path().is_ident("repr") {
                attributes.read_layout(attribute)?;
            }
        }
        Ok(attributes)
    }

    fn read(&mut self, attribute: &Attribute) -> Result<(), Error> {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("the attribute of a type is `crate = \"path::to::ats\"`"));
            }
            let path: LitStr = meta.value()?.parse()?;
            let path: Path = path.parse_with(Path::parse_mod_style)?;
            self.ats = quote!(#path);
            Ok(())
        })
    }

    fn read_layout(&mut self, attribute: &Attribute) -> Result<(), Error> {
        attribute.parse_nested_meta(|meta| {
            if let Some(word) = meta.path.get_ident() {
                match word.to_string().as_str() {
                    "packed" => self.is_packed = true,
                    "C" | "Rust" | "align" | "transparent" | "simd" => {}
                    _ => self.number = Some(word.clone()),
                }
            }
            if meta.input.peek(syn::token::Paren) {
                meta.input.parse::<proc_macro2::Group>()?;
            }
            Ok(())
        })
    }
}

/// Refuses attributes of fields and variants, because none are supported.
fn refuse_inside(data: &Data) -> Result<(), Error> {
    let check = |attributes: &[Attribute]| {
        let ours = attributes.iter().find(|it| it.path().is_ident("ats"));
        let text = "fields and variants have no attributes of `ats`";
        ours.map_or(Ok(()), |ours| Err(Error::new_spanned(ours, text)))
    };
    let check_all = |fields: &syn::Fields| fields.iter().try_for_each(|it| check(&it.attrs));
    match data {
        Data::Struct(data) => check_all(&data.fields),
        Data::Union(_) => Ok(()),
        Data::Enum(data) => data.variants.iter().try_for_each(|variant| {
            check(&variant.attrs)?;
            check_all(&variant.fields)
        }),
    }
}
