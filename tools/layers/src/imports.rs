//! Imports between the files of a crate: the names that each file takes from another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

/// The imports of a crate.
#[derive(Default)]
pub struct Imports {
    /// Paths below `src`.
    pub files: Vec<String>,
    /// The names that the first file takes from the second.
    pub between: BTreeMap<(usize, usize), BTreeSet<String>>,
    /// The crates that a file's paths begin with, by their names in code.
    pub crates: BTreeSet<(usize, String)>,
}

/// An item of the module itself, or a path to it.
enum Name {
    Here,
    Alias(Vec<String>),
}

#[derive(Default)]
struct Module {
    file: usize,
    parent: usize,
    children: HashMap<String, usize>,
    names: HashMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

#[derive(Default)]
struct Reader {
    imports: Imports,
    modules: Vec<Module>,
    sources: Vec<(usize, syn::File)>,
}

/// Reads the crate whose `src` this is, without code that is compiled for its tests only.
pub fn read(source: &Path) -> io::Result<Imports> {
    let mut reader = Reader::default();
    for root in ["lib.rs", "main.rs"].map(|name| source.join(name)) {
        if root.exists() {
            reader.read_file(source, &root, source, None)?;
        }
    }
    let sources = std::mem::take(&mut reader.sources);
    for (module, file) in &sources {
        Walk {
            reader: &mut reader,
            module: *module,
        }
        .visit_file(file);
    }
    Ok(reader.imports)
}

impl Reader {
    /// Adds a module in a file of its own. The files of its children are in `folder`.
    fn read_file(
        &mut self,
        source: &Path,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
    ) -> io::Result<usize> {
        let parsed = syn::parse_file(&fs::read_to_string(path)?)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        let file = self.imports.files.len();
        let name = path.strip_prefix(source).unwrap_or(path);
        self.imports.files.push(name.display().to_string());
        let module = self.add_module(file, parent);
        self.add_items(source, folder, module, &parsed.items)?;
        self.sources.push((module, parsed));
        Ok(module)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        let index = self.modules.len();
        let parent = parent.unwrap_or(index);
        self.modules.push(Module {
            file,
            parent,
            ..Module::default()
        });
        index
    }

    fn add_items(
        &mut self,
        source: &Path,
        folder: &Path,
        module: usize,
        items: &[Item],
    ) -> io::Result<()> {
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            let name = match item {
                Item::Mod(item) => {
                    let name = item.ident.to_string();
                    let below = folder.join(&name);
                    let child = match &item.content {
                        Some((_, items)) => {
                            let file = self.modules[module].file;
                            let child = self.add_module(file, Some(module));
                            self.add_items(source, &below, child, items)?;
                            child
                        }
                        None => {
                            let path = file_of(&below);
                            self.read_file(source, &path, &below, Some(module))?
                        }
                    };
                    self.modules[module].children.insert(name, child);
                    continue;
                }
                Item::Use(item) => {
                    self.add_use(module, &mut Vec::new(), &item.tree);
                    continue;
                }
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Union(item) => &item.ident,
                Item::Macro(item) => match &item.ident {
                    Some(name) => name,
                    None => continue,
                },
                _ => continue,
            };
            let names = &mut self.modules[module].names;
            names.entry(name.to_string()).or_default().push(Name::Here);
        }
        Ok(())
    }

    fn add_use(&mut self, module: usize, before: &mut Vec<String>, tree: &UseTree) {
        for (name, path) in leaves(before, tree) {
            let module = &mut self.modules[module];
            match name {
                Some(name) => module
                    .names
                    .entry(name)
                    .or_default()
                    .push(Name::Alias(path)),
                None => module.globs.push(path),
            }
        }
    }

    /// Notes the target of a path, seen from a module.
    fn note(&mut self, module: usize, path: &[String]) {
        let from = self.modules[module].file;
        let Some(first) = path.first() else { return };
        if first.starts_with("ats") && !self.modules[module].children.contains_key(first) {
            self.imports.crates.insert((from, first.clone()));
        }
        let mut found = BTreeSet::new();
        self.resolve(module, path, 0, &mut found);
        for file in found.into_iter().filter(|file| *file != from) {
            let names = self.imports.between.entry((from, file)).or_default();
            names.insert(path.last().unwrap_or(first).clone());
        }
    }

    /// Adds the files that define the target of a path: through re-exports, not the files of those.
    /// Modules are nothing by themselves.
    fn resolve(&self, module: usize, path: &[String], depth: u32, found: &mut BTreeSet<usize>) {
        let [first, rest @ ..] = path else { return };
        // Only names that refer to each other are that deep.
        if depth > 32 {
            return;
        }
        let here = &self.modules[module];
        match &first[..] {
            "crate" => return self.resolve(0, rest, depth, found),
            "self" => return self.resolve(module, rest, depth, found),
            "super" => return self.resolve(here.parent, rest, depth, found),
            _ => {}
        }
        if let Some(child) = here.children.get(first) {
            self.resolve(*child, rest, depth, found);
        }
        for name in here.names.get(first).into_iter().flatten() {
            match name {
                Name::Here => drop(found.insert(here.file)),
                Name::Alias(to) if to[..] != path[..to.len().min(path.len())] => {
                    self.resolve(module, &[to, rest].concat(), depth + 1, found);
                }
                Name::Alias(_) => {}
            }
        }
        if !here.names.contains_key(first) && !here.children.contains_key(first) {
            for glob in &here.globs {
                self.resolve(module, &[glob, path].concat(), depth + 1, found);
            }
        }
    }
}

/// The walk over a file that finds its paths.
struct Walk<'a> {
    reader: &'a mut Reader,
    module: usize,
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let child = self.reader.modules[self.module]
            .children
            .get(&item.ident.to_string());
        if let (Some(child), Some((_, items))) = (child, &item.content) {
            let mut walk = Walk {
                module: *child,
                reader: self.reader,
            };
            items.iter().for_each(|item| walk.visit_item(item));
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (_, path) in leaves(&mut Vec::new(), &item.tree) {
            // Re-exports count where they are used.
            if matches!(item.vis, Visibility::Inherited) {
                self.reader.note(self.module, &path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.reader.note(self.module, &names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.visit_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _attribute: &'ast Attribute) {}

    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}
}

impl Walk<'_> {
    /// Finds the paths of two names and more in the tokens of a macro call.
    fn visit_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                token => {
                    self.note_long(&path);
                    path.clear();
                    match token {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.visit_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
            colons = 0;
        }
        self.note_long(&path);
    }

    fn note_long(&mut self, path: &[String]) {
        if path.len() > 1 {
            self.reader.note(self.module, path);
        }
    }
}

/// Returns the file of a module whose children are in this folder.
fn file_of(folder: &Path) -> PathBuf {
    let beside = folder.with_extension("rs");
    if beside.exists() {
        beside
    } else {
        folder.join("mod.rs")
    }
}

/// Returns the names that a `use` gives, each with its path. A glob has no name.
fn leaves(before: &mut Vec<String>, tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    let whole = |last: String| match &last[..] {
        "self" => before.clone(),
        _ => [&before[..], &[last]].concat(),
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            let found = leaves(before, &path.tree);
            before.pop();
            found
        }
        UseTree::Name(name) => {
            let path = whole(name.ident.to_string());
            vec![(path.last().cloned(), path)]
        }
        UseTree::Rename(name) => {
            let path = whole(name.ident.to_string());
            vec![(Some(name.rename.to_string()), path)]
        }
        UseTree::Glob(_) => vec![(None, before.clone())],
        UseTree::Group(group) => {
            let trees = group.items.iter();
            trees.flat_map(|tree| leaves(before, tree)).collect()
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns `true` if an item is compiled only for tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    let mut conditions = attributes.iter().filter(is_cfg);
    conditions.any(|attribute| attribute.parse_args().is_ok_and(|meta| needs_test(&meta)))
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
    let parts = parser.parse2(list.tokens.clone()).unwrap_or_default();
    match list.path.get_ident().map(ToString::to_string).as_deref() {
        Some("all") => parts.iter().any(needs_test),
        Some("any") => !parts.is_empty() && parts.iter().all(needs_test),
        _ => false,
    }
}
