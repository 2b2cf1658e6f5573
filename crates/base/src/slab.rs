//! A slab: values with `u32` handles. Freed handles are reused, the last freed first.

/// Values with handles. The order of handles depends only on the order of calls.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Stores `value` and returns its handle.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(handle) => {
                self.items[handle as usize] = value;
                handle
            }
            None => {
                let handle = u32::try_from(self.items.len()).expect("fewer than 2^32 values are alive at once");
                self.items.push(value);
                handle
            }
        }
    }
    /// Frees the handle. The value is kept until the handle is reused.
    #[inline]
    pub fn remove(&mut self, handle: u32) {
        debug_assert!(!self.free.contains(&handle), "handle {handle} freed twice");
        self.free.push(handle);
    }
    /// Returns the value of `handle`.
    #[inline]
    pub fn get(&self, handle: u32) -> &T {
        &self.items[handle as usize]
    }
    /// Returns the value of `handle`, mutable.
    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut T {
        &mut self.items[handle as usize]
    }
    /// Returns the number of live values.
    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
    /// Returns whether no value is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_reused_last_freed_first() {
        let mut slab = Slab::default();
        let [a, b, c] = ["a", "b", "c"].map(|v| slab.insert(v));
        slab.remove(a);
        slab.remove(c);
        assert_eq!(slab.len(), 1);
        assert_eq!((slab.insert("d"), slab.insert("e")), (c, a));
        assert_eq!((*slab.get(c), *slab.get(a), *slab.get(b)), ("d", "e", "b"));
    }
}
