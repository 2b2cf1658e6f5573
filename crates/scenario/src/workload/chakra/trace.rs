//! The protobuf messages of a trace file: `GlobalMetadata`, then `Node`s, each preceded by its
//! length.
//!
//! Source: et_def.proto, version 0.0.4. Fields that are not needed are skipped.

use prost::Message as _;

/// The type of a node, as far as it matters for a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    Send,
    Receive,
    Collective,
    /// Metadata, memory, computation.
    Other,
}

/// The message before the nodes.
#[derive(Clone, PartialEq, prost::Message)]
struct GlobalMetadata {
    #[prost(string, tag = "1")]
    version: String,
}

/// A node of a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// `NodeType` of the schema.
    #[prost(int32, tag = "3")]
    pub node_type: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub attr: Vec<Attribute>,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 29")]
    pub value: Option<Value>,
}

/// The value of an attribute that is a whole number or a text. Files use different types for numbers.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(string, tag = "29")]
    Text(String),
}

impl Node {
    /// Returns the type of the node, or `None` if the schema does not have it. Type 0 is
    /// `INVALID_NODE`.
    pub fn known_kind(&self) -> Option<NodeType> {
        match self.node_type {
            1..=4 => Some(NodeType::Other),
            5 => Some(NodeType::Send),
            6 => Some(NodeType::Receive),
            7 => Some(NodeType::Collective),
            _ => None,
        }
    }
    /// Returns the type of a node that [`nodes`] has read.
    pub fn kind(&self) -> NodeType {
        self.known_kind().unwrap_or(NodeType::Other)
    }
    /// Returns the attribute of this name if it is a whole number that is not negative.
    pub fn number(&self, name: &str) -> Option<u64> {
        match *self.value(name)? {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => n.try_into().ok(),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => n.try_into().ok(),
            Value::Uint32(n) | Value::Fixed32(n) => Some(n.into()),
            Value::Uint64(n) | Value::Fixed64(n) => Some(n),
            Value::Text(ref text) => text.parse().ok(),
        }
    }
    /// Returns the attribute of this name if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    fn value(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attr| attr.name == name)?.value.as_ref()
    }
}

/// Reads the nodes of a file. The error names the offset of the byte.
pub fn nodes(file: &str, bytes: &[u8]) -> Result<Vec<Node>, String> {
    let mut rest = bytes;
    let wrong = |rest: &[u8], what: &str, e: prost::DecodeError| {
        format!("{file}: byte {}: this is not {what}: {e}", bytes.len() - rest.len())
    };
    let mut found = Vec::new();
    let start = rest;
    GlobalMetadata::decode_length_delimited(&mut rest).map_err(|e| wrong(start, "the header of a trace", e))?;
    while !rest.is_empty() {
        let at = rest;
        let node = Node::decode_length_delimited(&mut rest).map_err(|e| wrong(at, "a node of a trace", e))?;
        if node.known_kind().is_none() {
            let (byte, Node { id, node_type, .. }) = (bytes.len() - at.len(), node);
            return Err(format!("{file}: byte {byte}: node {id}: its type is {node_type}, but the schema has the types 1 to 7"));
        }
        found.push(node);
    }
    Ok(found)
}

/// For the tests of traces.
#[cfg(test)]
pub mod testing {
    use super::*;

    /// Returns a node with this id and type that depends on other nodes.
    pub fn node(id: u64, node_type: i32, deps: &[u64]) -> Node {
        Node { id, node_type, data_deps: deps.to_vec(), ..Node::default() }
    }

    impl Node {
        /// Adds an attribute that is a number.
        pub fn with(self, name: &str, number: u64) -> Node {
            self.and(name, Value::Int64(number.cast_signed()))
        }
        /// Adds an attribute that is a text.
        pub fn named(self, name: &str, text: &str) -> Node {
            self.and(name, Value::Text(text.to_owned()))
        }
        /// Sets the duration.
        pub fn takes(self, duration_micros: u64) -> Node {
            Node { duration_micros, ..self }
        }
        fn and(mut self, name: &str, value: Value) -> Node {
            self.attr.push(Attribute { name: name.to_owned(), value: Some(value) });
            self
        }
    }

    /// Returns a trace with these nodes.
    pub fn file(nodes: &[Node]) -> Vec<u8> {
        let mut bytes = GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
        nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and a node with fields of most types, written by the Python library of protobuf
    /// from et_def.proto.
    #[test]
    fn files_of_another_library_are_read() {
        let hex = "150a05302e302e34120c0a06736368656d61ea0101787b0803120473656e6418052201012a0302ac023009380442040a025b5d4a040a02\
                   5b5d520e0a0969735f6370755f6f70d80100520f0a09636f6d6d5f73697a654880804052100a05736861726519000000000000e03f5214\
                   0a0c696e766f6c7665645f64696de201030a0101520e0a0770675f6e616d65ea01026470";
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        let nodes = nodes("t.0.et", &bytes).unwrap();
        let [node] = &nodes[..] else { panic!("one node") };
        assert_eq!(
            (node.id, node.kind(), &node.ctrl_deps, &node.data_deps, node.duration_micros),
            (3, NodeType::Send, &vec![1], &vec![2, 300], 4)
        );
        assert_eq!((node.number("comm_size"), node.text("pg_name")), (Some(1_048_576), Some("dp")));
        assert_eq!((node.number("share"), node.number("is_cpu_op"), node.number("involved_dim")), (None, None, None));
    }
}
