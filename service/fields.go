package service

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// The rules of fields, as the protos state them.
const (
	longestOwner    = 128
	longestMetadata = 1 << 10
	longestReason   = 256
	longestWait     = 10 * 365 * 24 * time.Hour
	longestGrace    = 24 * time.Hour
	mostHolds       = 1000
)

// parseText checks a field that people read.
func parseText(field, value string, longest int) error {
	switch {
	case len(value) > longest:
		return invalid(field, value, fmt.Sprintf("at most %d bytes", longest))
	case !utf8.ValidString(value):
		return invalid(field, value, "UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		return invalid(field, value, "no control characters")
	}
	return nil
}

// parseRequired checks a field that people read and that says something.
func parseRequired(field, value string, longest int) error {
	if strings.TrimSpace(value) == "" {
		return invalid(field, value, fmt.Sprintf("1 to %d bytes, not only spaces", longest))
	}
	return parseText(field, value, longest)
}

// parseAbout checks what a caller says about itself.
func parseAbout(owner string, metadata map[string]string) (recipes.About, error) {
	if err := parseText("owner", owner, longestOwner); err != nil {
		return recipes.About{}, err
	}
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return recipes.About{}, invalid("metadata", key, "UTF-8")
		}
	}
	if size > longestMetadata {
		return recipes.About{}, invalid("metadata", fmt.Sprintf("%d bytes", size),
			fmt.Sprintf("at most %d bytes, counted over keys and values", longestMetadata))
	}
	return recipes.About{Owner: owner, Metadata: metadata}, nil
}

// parseDuration checks a duration between least and most. An omitted one is nil.
func parseDuration(field string, value *durationpb.Duration, least, most time.Duration) (*time.Duration, error) {
	if value == nil {
		return nil, nil
	}
	duration := value.AsDuration() // which saturates, so that a valid one out of int64's range is out of ours too
	if value.CheckValid() != nil {
		return nil, invalid(field, fmt.Sprintf("%ds and %dns", value.GetSeconds(), value.GetNanos()), "a valid duration")
	}
	if duration < least || duration > most {
		return nil, invalid(field, duration.String(), fmt.Sprintf("a duration from %v to %v", least, most))
	}
	return &duration, nil
}

// modes are the wire's modes in the recipe's words.
var modes = map[holdv1.Mode]recipes.Mode{
	holdv1.Mode_MODE_UNSPECIFIED: recipes.Exclusive,
	holdv1.Mode_MODE_EXCLUSIVE:   recipes.Exclusive,
	holdv1.Mode_MODE_READ:        recipes.Read,
	holdv1.Mode_MODE_WRITE:       recipes.Write,
}

func parseMode(value holdv1.Mode) (recipes.Mode, error) {
	mode, known := modes[value]
	if !known {
		return 0, invalid("mode", value.String(), "EXCLUSIVE, READ or WRITE")
	}
	return mode, nil
}

func modeOnWire(mode recipes.Mode) holdv1.Mode {
	switch mode {
	case recipes.Read:
		return holdv1.Mode_MODE_READ
	case recipes.Write:
		return holdv1.Mode_MODE_WRITE
	default:
		return holdv1.Mode_MODE_EXCLUSIVE
	}
}

// parseID checks the form of a lease's or hold's id. Its value never stands in the error: it may be somebody's secret.
func parseID(field, value string) error {
	if len(value) == 2*idBytes && strings.Trim(value, "0123456789abcdef") == "" {
		return nil
	}
	return invalid(field, fmt.Sprintf("%d bytes long", len(value)), "32 hexadecimal digits, in lower case")
}
