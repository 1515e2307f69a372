//! From text to a tree, by precedence climbing.

use crate::error::ArrayError;
use crate::expr::ast::{Binary, Literal, MAX_DEPTH, MAX_TEXT, Node, NodeKind, Unary};

/// Most parts of an expression. It bounds the depth of the tree, which grows with the length of a chain of operators.
const MAX_NODES: usize = 1024;

pub(crate) fn parse(text: &str, inputs: &[String]) -> Result<Node, ArrayError> {
    if text.len() > MAX_TEXT {
        return Err(wrong(1, format!("it is longer than {MAX_TEXT} bytes")));
    }
    let mut parser = Parser { chars: text.chars().collect(), at: 0, inputs, nodes: 0 };
    let node = parser.expression(0, 0)?;
    match parser.peek() {
        None => Ok(node),
        Some(c) => Err(parser.error(format!("'{c}' does not belong here"))),
    }
}

fn wrong(at: usize, why: impl Into<String>) -> ArrayError {
    ArrayError::Expression { at, why: why.into() }
}

struct Parser<'a> {
    chars: Vec<char>,
    at: usize,
    inputs: &'a [String],
    nodes: usize,
}

/// Binding strength of the unary operators: more than all binary operators except the power.
const UNARY: u8 = 6;

impl Parser<'_> {
    fn error(&self, why: impl Into<String>) -> ArrayError {
        wrong(self.at + 1, why)
    }

    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, c: char, what: &str) -> Result<(), ArrayError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(format!("'{c}' is missing {what}"))) }
    }

    /// Returns the next binary operator, its binding strength and its length in characters.
    fn operator(&mut self) -> Option<(Binary, u8, usize)> {
        use Binary::*;
        let first = self.peek()?;
        let second = self.chars.get(self.at + 1).copied();
        Some(match (first, second) {
            ('*', Some('*')) => (Power, 7, 2),
            ('/', Some('/')) => (FloorDivide, 5, 2),
            ('<', Some('=')) => (LessEqual, 3, 2),
            ('>', Some('=')) => (GreaterEqual, 3, 2),
            ('=', Some('=')) => (Equal, 3, 2),
            ('!', Some('=')) => (NotEqual, 3, 2),
            ('*', _) => (Multiply, 5, 1),
            ('/', _) => (Divide, 5, 1),
            ('%', _) => (Remainder, 5, 1),
            ('+', _) => (Add, 4, 1),
            ('-', _) => (Subtract, 4, 1),
            ('<', _) => (Less, 3, 1),
            ('>', _) => (Greater, 3, 1),
            ('&', _) => (And, 2, 1),
            ('|', _) => (Or, 1, 1),
            _ => return None,
        })
    }

    fn node(&mut self, at: usize, kind: NodeKind) -> Result<Node, ArrayError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(wrong(at + 1, format!("it has more than {MAX_NODES} parts")));
        }
        Ok(Node { at: at + 1, kind })
    }

    /// Reads an expression of operators with at least the binding strength `least`. A chain of one operator gives a
    /// tree as deep as the chain is long, at most `MAX_NODES`.
    fn expression(&mut self, least: u8, depth: usize) -> Result<Node, ArrayError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("it is nested more than {MAX_DEPTH} deep")));
        }
        let mut left = self.operand(depth)?;
        let mut compared = false;
        while let Some((operator, strength, length)) = self.operator() {
            if strength < least {
                break;
            }
            if operator.is_comparison() && std::mem::replace(&mut compared, true) {
                return Err(self.error("comparisons cannot be chained; join them with '&'"));
            }
            let at = self.at;
            self.at += length;
            // The power goes from right to left, and its right side may have a sign.
            let right =
                self.expression(if operator == Binary::Power { UNARY } else { strength + 1 }, depth + 1)?;
            left = self.node(at, NodeKind::Binary(operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn operand(&mut self, depth: usize) -> Result<Node, ArrayError> {
        let at = {
            self.peek();
            self.at
        };
        match self.peek() {
            Some('-') => {
                self.at += 1;
                let of = self.expression(UNARY, depth + 1)?;
                match of.kind {
                    NodeKind::Literal(Literal::Int(n)) => self.node(at, NodeKind::Literal(Literal::Int(-n))),
                    NodeKind::Literal(Literal::Float(x)) => {
                        self.node(at, NodeKind::Literal(Literal::Float(-x)))
                    }
                    _ => self.node(at, NodeKind::Unary(Unary::Negative, Box::new(of))),
                }
            }
            Some('+') => {
                self.at += 1;
                self.expression(UNARY, depth + 1)
            }
            Some('~') => {
                self.at += 1;
                let of = self.expression(UNARY, depth + 1)?;
                self.node(at, NodeKind::Unary(Unary::Not, Box::new(of)))
            }
            Some('(') => {
                self.at += 1;
                let inside = self.expression(0, depth + 1)?;
                self.expect(')', "here")?;
                Ok(inside)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name(depth),
            _ => Err(self.error("a number, a name or '(' is missing here")),
        }
    }

    fn number(&mut self) -> Result<Node, ArrayError> {
        let at = self.at;
        let mut whole = true;
        while let Some(c) = self.chars.get(self.at).copied() {
            let sign = matches!(c, '+' | '-') && matches!(self.chars[self.at - 1], 'e' | 'E') && self.at > at;
            match c {
                '0'..='9' => {}
                '.' | 'e' | 'E' => whole = false,
                _ if sign => {}
                _ => break,
            }
            self.at += 1;
        }
        let text: String = self.chars[at..self.at].iter().collect();
        let literal =
            if whole { text.parse().ok().map(Literal::Int) } else { text.parse().ok().map(Literal::Float) };
        let literal = literal.ok_or_else(|| wrong(at + 1, format!("'{text}' is not a number")))?;
        self.node(at, NodeKind::Literal(literal))
    }

    fn name(&mut self, depth: usize) -> Result<Node, ArrayError> {
        let at = self.at;
        while self.chars.get(self.at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
            self.at += 1;
        }
        let name: String = self.chars[at..self.at].iter().collect();
        if self.peek() == Some('(') {
            return self.call(at, &name, depth);
        }
        if let Some(input) = self.inputs.iter().position(|input| *input == name) {
            return self.node(at, NodeKind::Input(input));
        }
        let literal = match name.as_str() {
            "true" | "True" => Literal::Bool(true),
            "false" | "False" => Literal::Bool(false),
            "nan" => Literal::Float(f64::NAN),
            "inf" => Literal::Float(f64::INFINITY),
            _ => {
                let known = self.inputs.join(", ");
                return Err(wrong(at + 1, format!("'{name}' is not known here; there is {known}")));
            }
        };
        self.node(at, NodeKind::Literal(literal))
    }

    fn call(&mut self, at: usize, name: &str, depth: usize) -> Result<Node, ArrayError> {
        let wanted = match name {
            "where" | "clip" => 3,
            "min" | "max" => 2,
            _ if Unary::named(name).is_some() => 1,
            _ => return Err(wrong(at + 1, format!("there is no function '{name}'"))),
        };
        self.expect('(', "after the name of a function")?;
        let mut given = Vec::new();
        loop {
            given.push(self.expression(0, depth + 1)?);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')', "after the arguments of a function")?;
        let count = given.len();
        let why = || wrong(at + 1, format!("{name} takes {wanted} arguments and {count} are given"));
        if count != wanted {
            return Err(why());
        }
        let mut given = given.into_iter().map(Box::new);
        let mut next = || given.next().ok_or_else(why);
        let kind = match name {
            "where" => NodeKind::Where(next()?, next()?, next()?),
            "min" => NodeKind::Binary(Binary::Minimum, next()?, next()?),
            "max" => NodeKind::Binary(Binary::Maximum, next()?, next()?),
            "clip" => {
                let (x, low, high) = (next()?, next()?, next()?);
                let raised = self.node(at, NodeKind::Binary(Binary::Maximum, x, low))?;
                NodeKind::Binary(Binary::Minimum, Box::new(raised), high)
            }
            _ => NodeKind::Unary(Unary::named(name).ok_or_else(why)?, next()?),
        };
        self.node(at, kind)
    }
}
