//! The types that functions demand of their arguments.

use crate::function::Function;
use ats_term::order::Class;

const LIST: &[Class] = &[Class::Nil, Class::Cons];

/// Returns the classes of the first argument if a test is `true`, and `true` if all terms of these
/// classes pass.
pub(super) fn test_classes(function: Function) -> Option<(&'static [Class], bool)> {
    Some(match function {
        Function::IsAtom => (&[Class::Atom], true),
        Function::IsBoolean => (&[Class::Atom], false),
        Function::IsInteger | Function::IsFloat => (&[Class::Number], false),
        Function::IsNumber => (&[Class::Number], true),
        Function::IsList => (LIST, true),
        Function::IsPid => (&[Class::Pid], true),
        Function::IsPort => (&[Class::Port], true),
        Function::IsReference => (&[Class::Reference], true),
        Function::IsTuple => (&[Class::Tuple], true),
        Function::IsRecord => (&[Class::Tuple], false),
        Function::IsMap => (&[Class::Map], true),
        Function::IsBinary => (&[Class::Bitstring], false),
        Function::IsBitstring => (&[Class::Bitstring], true),
        Function::IsFunction => (&[Class::Fun], true),
        Function::IsFunctionOf => (&[Class::Fun], false),
        _ => return None,
    })
}

/// Returns the classes that argument `at`, from 0, must be of; the function raises an exception
/// otherwise.
pub(super) fn argument_classes(function: Function, at: usize) -> Option<&'static [Class]> {
    Some(match (function, at) {
        (Function::Hd | Function::Tl, _) => &[Class::Cons],
        (Function::Length, _) => LIST,
        (Function::Element, 1) | (Function::TupleSize, _) => &[Class::Tuple],
        (Function::Size, _) => &[Class::Tuple, Class::Bitstring],
        (Function::MapSize, _) | (Function::MapGet | Function::IsMapKey, 1) => &[Class::Map],
        (Function::BitSize | Function::ByteSize, _)
        | (Function::BinaryPart | Function::BinaryPartOf, 0) => &[Class::Bitstring],
        (Function::NodeOf, _) => &[Class::Reference, Class::Port, Class::Pid],
        (Function::Not | Function::Xor, _) => &[Class::Atom],
        (Function::Element, 0)
        | (Function::BinaryPartOf, 1 | 2)
        | (
            Function::Abs
            | Function::Round
            | Function::Trunc
            | Function::Float
            | Function::Ceil
            | Function::Floor
            | Function::Plus
            | Function::Negate
            | Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Div
            | Function::Rem
            | Function::Band
            | Function::Bor
            | Function::Bxor
            | Function::Bnot
            | Function::Bsl
            | Function::Bsr,
            _,
        ) => &[Class::Number],
        _ => return None,
    })
}
