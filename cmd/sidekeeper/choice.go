package main

import (
	"fmt"
	"slices"
	"strings"
)

// A choice is a flag's value that is one of some words, the first unless another is chosen.
type choice struct {
	values []string
	chosen string
}

func (c *choice) String() string {
	if c.chosen == "" && len(c.values) > 0 {
		return c.values[0]
	}
	return c.chosen
}

// Set chooses a word.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.values, word) {
		return fmt.Errorf("must be one of %s", c.Type())
	}
	c.chosen = word
	return nil
}

// Type lists the words in the help.
func (c *choice) Type() string { return strings.Join(c.values, "|") }
