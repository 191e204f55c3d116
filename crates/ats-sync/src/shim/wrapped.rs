//! Atomics around others, with something to be done before each access.

/// All atomics, with those operations that this project uses, around the ones of a module called `inner`.
/// The functions `will_load`, `will_store` and `will_change` say what is done before; they get the address of
/// the atomic. `const` is for those that can be made at compile time.
macro_rules! wrapped_atomics {
    ($($const:ident)?) => {
        wrapped_atomics!(@numbers [$($const)?]
            AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicI32: i32,
            AtomicU64: u64, AtomicI64: i64, AtomicUsize: usize
        );
        wrapped_atomics!(@values [$($const)?] AtomicBool: bool);

        #[derive(Debug)]
        #[repr(transparent)]
        pub struct AtomicPtr<T>(inner::AtomicPtr<T>);

        impl<T> AtomicPtr<T> {
            wrapped_atomics!(@operations [$($const)?] AtomicPtr, *mut T);
        }
    };

    (@numbers $const:tt $($name:ident: $value:ty),*) => {
        $(
            wrapped_atomics!(@values $const $name: $value);

            impl $name {
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    will_change((&raw const self.0).addr());
                    self.0.fetch_add(value, order)
                }

                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    will_change((&raw const self.0).addr());
                    self.0.fetch_sub(value, order)
                }
            }
        )*
    };

    (@values $const:tt $name:ident: $value:ty) => {
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(inner::$name);

        impl $name {
            wrapped_atomics!(@operations $const $name, $value);
        }
    };

    (@operations [$($const:ident)?] $name:ident, $value:ty) => {
        pub $($const)? fn new(value: $value) -> Self {
            Self(inner::$name::new(value))
        }

        pub fn load(&self, order: Ordering) -> $value {
            will_load((&raw const self.0).addr());
            self.0.load(order)
        }

        pub fn store(&self, value: $value, order: Ordering) {
            will_store((&raw const self.0).addr());
            self.0.store(value, order);
        }

        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            will_change((&raw const self.0).addr());
            self.0.swap(value, order)
        }

        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            will_change((&raw const self.0).addr());
            self.0.compare_exchange(current, new, success, failure)
        }

        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }
    };
}
