//! Wrappers of atomics, with a hook before each access.

/// Defines wrappers of the atomics of a module called `inner`, with the operations that this
/// project uses. The hooks `will_load`, `will_store` and `will_change` run before them and get the
/// address of the atomic. `const` is for atomics that can be made at compile time.
macro_rules! wrapped_atomics {
    ($($const:ident)?) => {
        wrapped_atomics!(@numbers [$($const)?]
            AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicI32: i32,
            AtomicU64: u64, AtomicI64: i64, AtomicUsize: usize
        );
        wrapped_atomics!(@type [$($const)?] AtomicBool: bool);
        wrapped_atomics!(@type [$($const)?] AtomicPtr: *mut T, T);
    };

    (@numbers $const:tt $($name:ident: $value:ty),*) => {
        $(
            wrapped_atomics!(@type $const $name: $value);

            impl $name {
                wrapped_atomics! { @operations
                    fetch_add = fetch_add after will_change(by: $value, order: Ordering) -> $value,
                    fetch_sub = fetch_sub after will_change(by: $value, order: Ordering) -> $value,
                    fetch_and = fetch_and after will_change(by: $value, order: Ordering) -> $value,
                    fetch_or = fetch_or after will_change(by: $value, order: Ordering) -> $value
                }
            }
        )*
    };

    (@type [$($const:ident)?] $name:ident: $value:ty $(, $of:ident)?) => {
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name$(<$of>)?(inner::$name$(<$of>)?);

        impl$(<$of>)? $name$(<$of>)? {
            pub $($const)? fn new(value: $value) -> Self {
                Self(inner::$name::new(value))
            }

            // A weak exchange is a strong one, which never fails spuriously, so that runs are
            // repeatable.
            wrapped_atomics! { @operations
                load = load after will_load(order: Ordering) -> $value,
                store = store after will_store(value: $value, order: Ordering) -> (),
                swap = swap after will_change(value: $value, order: Ordering) -> $value,
                compare_exchange = compare_exchange after will_change(
                    current: $value, new: $value, success: Ordering, failure: Ordering
                ) -> Result<$value, $value>,
                compare_exchange_weak = compare_exchange after will_change(
                    current: $value, new: $value, success: Ordering, failure: Ordering
                ) -> Result<$value, $value>
            }
        }
    };

    (@operations $(
        $name:ident = $inner:ident after $before:ident($($argument:ident: $type:ty),*) -> $result:ty
    ),*) => {
        $(
            pub fn $name(&self, $($argument: $type),*) -> $result {
                $before((&raw const self.0).addr());
                self.0.$inner($($argument),*)
            }
        )*
    };
}
