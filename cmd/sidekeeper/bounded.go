package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A bounded is a flag's value that lies between two others.
type bounded[T cmp.Ordered] struct {
	value       *T
	least, most T
	kind, rule  string // as the help names it, and what it has to be
	parse       func(string) (T, error)
}

// Set takes a value in. Its error is the rule alone: flagError names the flag and the value.
func (b *bounded[T]) Set(text string) error {
	value, err := b.parse(text)
	if err != nil || value < b.least || value > b.most {
		return brokenRule(b.rule)
	}
	*b.value = value
	return nil
}

// String is 0 for a duration of 0s, which the help then does not show as the default.
func (b *bounded[T]) String() string {
	if b.value == nil || *b.value == *new(T) {
		return "0"
	}
	return fmt.Sprint(*b.value)
}

// Type is what the help calls the value.
func (b *bounded[T]) Type() string { return b.kind }

// forever is for durations without a limit.
const forever = time.Duration(math.MaxInt64)

// span is a duration, preset to what value points to, from least to most.
func span(value *time.Duration, least, most time.Duration) *bounded[time.Duration] {
	rule := fmt.Sprintf("a duration from %v to %v", least, most)
	if most == forever {
		rule = fmt.Sprintf("a duration from %v, such as 1m30s", least)
	}
	return &bounded[time.Duration]{value, least, most, "duration", rule, time.ParseDuration}
}

// number is a whole number, preset to what value points to, from least to most.
func number[T int | int32 | int64](value *T, least, most T) *bounded[T] {
	rule := fmt.Sprintf("a whole number from %d to %d", least, most)
	if int64(most) == math.MaxInt32 || int64(most) == math.MaxInt64 {
		rule = fmt.Sprintf("a whole number from %d", least)
	}
	return &bounded[T]{value, least, most, fmt.Sprintf("%T", *value), rule, func(text string) (T, error) {
		read, err := strconv.ParseInt(text, 10, 64)
		if err == nil && int64(T(read)) != read {
			err = strconv.ErrRange
		}
		return T(read), err
	}}
}

// A brokenRule is the rule that a value breaks.
type brokenRule string

func (r brokenRule) Error() string { return string(r) }

// flagError names the flag, its value and the rule that this breaks.
func flagError(_ *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		return fmt.Errorf("--%s is %q: %w", wrong.GetFlag().Name, wrong.GetValue(), ruleOf(wrong))
	}
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if is && unicode.IsDigit(rune(unknown.GetSpecifiedName()[0])) {
		return fmt.Errorf("-%s is no flag: a negative number comes after --", unknown.GetSpecifiedShortnames())
	}
	return err
}

// kinds are the rules of the values that the flags' package reads itself.
var kinds = map[string]brokenRule{
	"bool":     "true or false",
	"duration": "a duration, such as 5s or 1m30s",
	"float64":  "a number",
	"int":      "a whole number",
	"int32":    "a whole number of 32 bits",
	"int64":    "a whole number of 64 bits",
	"uint16":   "a whole number from 0 to 65535",
}

// ruleOf is the rule that a flag's value breaks.
func ruleOf(wrong *pflag.InvalidValueError) error {
	_, ours := errors.AsType[brokenRule](wrong)
	if kind, known := kinds[wrong.GetFlag().Value.Type()]; known && !ours {
		return kind
	}
	return wrong.Unwrap()
}
