//! The functions that a match specification may call.

/// Declares the functions: the name in Rust, the name in Erlang, the number of arguments.
macro_rules! functions {
    ($($variant:ident $name:literal $arity:literal,)*) => {
        /// A function that guards and bodies may call.
        ///
        /// They behave like the functions of the module `erlang`, except that `length/1` never
        /// yields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Function {
            $(
                #[doc = concat!("`", $name, "/", stringify!($arity), "`")]
                $variant,
            )*
        }

        impl Function {
            /// Every function there is.
            pub const ALL: &[Function] = &[$(Function::$variant),*];

            /// Returns the name in Erlang. O(1).
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// Returns the number of arguments. O(1).
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Function::$variant => $arity),* }
            }

            /// Returns the function with this name and arity, in whichever release it was added.
            #[must_use]
            pub fn by_name(name: &str, arity: usize) -> Option<Function> {
                match (name, arity) {
                    $(($name, $arity) => Some(Function::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

functions! {
    IsAtom "is_atom" 1,
    IsFloat "is_float" 1,
    IsInteger "is_integer" 1,
    IsList "is_list" 1,
    IsNumber "is_number" 1,
    IsPid "is_pid" 1,
    IsPort "is_port" 1,
    IsReference "is_reference" 1,
    IsTuple "is_tuple" 1,
    IsMap "is_map" 1,
    IsBinary "is_binary" 1,
    IsBitstring "is_bitstring" 1,
    IsBoolean "is_boolean" 1,
    IsFunction "is_function" 1,
    IsFunctionOf "is_function" 2,
    IsRecord "is_record" 3,
    IsMapKey "is_map_key" 2,
    Abs "abs" 1,
    Element "element" 2,
    Hd "hd" 1,
    Tl "tl" 1,
    Length "length" 1,
    Max "max" 2,
    Min "min" 2,
    Node "node" 0,
    NodeOf "node" 1,
    Round "round" 1,
    Trunc "trunc" 1,
    Float "float" 1,
    Ceil "ceil" 1,
    Floor "floor" 1,
    Size "size" 1,
    MapSize "map_size" 1,
    MapGet "map_get" 2,
    BitSize "bit_size" 1,
    ByteSize "byte_size" 1,
    TupleSize "tuple_size" 1,
    BinaryPart "binary_part" 2,
    BinaryPartOf "binary_part" 3,
    Plus "+" 1,
    Negate "-" 1,
    Add "+" 2,
    Subtract "-" 2,
    Multiply "*" 2,
    Divide "/" 2,
    Div "div" 2,
    Rem "rem" 2,
    Band "band" 2,
    Bor "bor" 2,
    Bxor "bxor" 2,
    Bnot "bnot" 1,
    Bsl "bsl" 2,
    Bsr "bsr" 2,
    Greater ">" 2,
    GreaterOrEqual ">=" 2,
    Less "<" 2,
    LessOrEqual "=<" 2,
    Equal "==" 2,
    Same "=:=" 2,
    NotSame "=/=" 2,
    NotEqual "/=" 2,
    Not "not" 1,
    Xor "xor" 2,
}

/// The functions that a specification may call, which differ between the releases of Erlang/OTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionSet(u64);

/// The functions that were added after OTP 25.
const SINCE_OTP_25: [Function; 8] = [
    Function::IsBitstring,
    Function::IsBoolean,
    Function::IsFunctionOf,
    Function::Max,
    Function::Min,
    Function::TupleSize,
    Function::Ceil,
    Function::Floor,
];

impl FunctionSet {
    /// Every function.
    pub const ALL: FunctionSet = FunctionSet((1 << Function::ALL.len()) - 1);

    /// The functions of OTP 27: all of them.
    pub const OTP_27: FunctionSet = FunctionSet::ALL;

    /// The functions of OTP 25.
    pub const OTP_25: FunctionSet = {
        let (mut set, mut i) = (FunctionSet::ALL, 0);
        while i < SINCE_OTP_25.len() {
            set = set.without(SINCE_OTP_25[i]);
            i += 1;
        }
        set
    };

    /// Returns the set with this function added. O(1).
    #[must_use]
    pub const fn with(self, function: Function) -> FunctionSet {
        FunctionSet(self.0 | 1 << function as u8)
    }

    /// Returns the set without this function. O(1).
    #[must_use]
    pub const fn without(self, function: Function) -> FunctionSet {
        FunctionSet(self.0 & !(1 << function as u8))
    }

    /// Returns `true` if the function is in the set. O(1).
    #[must_use]
    pub const fn contains(self, function: Function) -> bool {
        self.0 & 1 << function as u8 != 0
    }
}

/// Returns `true` if this is the name of a special form of trace specifications.
pub(crate) fn is_trace_form(name: &str) -> bool {
    const FORMS: [&str; 14] = [
        "message",
        "is_seq_trace",
        "set_seq_token",
        "get_seq_token",
        "return_trace",
        "exception_trace",
        "display",
        "process_dump",
        "enable_trace",
        "disable_trace",
        "trace",
        "caller",
        "caller_line",
        "silent",
    ];
    FORMS.contains(&name)
}

/// Returns `true` if the function exists only in trace specifications.
pub(crate) fn is_trace_function(name: &str, arity: usize) -> bool {
    matches!(
        (name, arity),
        ("get_tcw", 0) | ("set_tcw" | "set_tcw_fake", 1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arities_lead_back() {
        assert_eq!(Function::ALL.len(), 63);
        for &function in Function::ALL {
            let found = Function::by_name(function.name(), function.arity());
            assert_eq!(found, Some(function));
        }
        assert_eq!(Function::by_name("element", 1), None);
    }

    #[test]
    fn the_releases_differ_by_eight() {
        let known = |set: FunctionSet| {
            let all = Function::ALL.iter();
            all.filter(|function| set.contains(**function)).count()
        };
        assert_eq!(known(FunctionSet::OTP_27), 63);
        assert_eq!(known(FunctionSet::OTP_25), 55);
        let more = FunctionSet::OTP_25.with(Function::Max);
        assert!(more.contains(Function::Max) && !more.contains(Function::Min));
        assert_eq!(more.without(Function::Max), FunctionSet::OTP_25);
    }
}
