// Package show writes what commands answer: tables for people, JSON for programs.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Message writes a message of the API as JSON on one line. Its own marshaller puts in blanks at random.
func Message(to io.Writer, message proto.Message) error {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return err
	}
	_, err = fmt.Fprintln(to, line.String())
	return err
}

// JSON writes a value on one line.
func JSON(to io.Writer, value any) error { return json.NewEncoder(to).Encode(value) }

// Table writes rows below a header.
func Table(to io.Writer, header string, rows [][]string) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	lines := []string{strings.ReplaceAll(header, " ", "\t")}
	for _, row := range rows {
		lines = append(lines, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if _, err := io.WriteString(table, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	return table.Flush()
}

// Printable shows words of others. They may hold what a terminal takes for commands, or a reader for the end of a column.
func Printable(words string) string {
	if words == "" {
		return "-"
	}
	if strings.Contains(words, "  ") || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(words)
	}
	return words
}

// Owner shows what a caller calls itself, beside what the sidecar knows of it. An owner that could be read as both stands in quotes.
func Owner(owner string) string {
	if strings.ContainsFunc(owner, isBracket) {
		return strconv.Quote(owner)
	}
	return Printable(owner)
}

func isBracket(r rune) bool { return unicode.In(r, unicode.Ps, unicode.Pe) }

// Metadata writes keys and values in one cell.
func Metadata(metadata map[string]string) string {
	pairs := make([]string, 0, len(metadata))
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		pairs = append(pairs, key+"="+metadata[key])
	}
	return Printable(strings.Join(pairs, ","))
}

// Age shows a time that has passed to the second, or less exactly if it was short.
func Age(d *durationpb.Duration) string {
	if passed := d.AsDuration(); passed >= 10*time.Second {
		return passed.Round(time.Second).String()
	}
	return d.AsDuration().Round(100 * time.Millisecond).String()
}

// Enum is the last word of an enum's value: MODE_READ is read.
func Enum(value fmt.Stringer) string {
	name := value.String()
	return strings.ToLower(name[strings.LastIndex(name, "_")+1:])
}

// Notes returns what prints a line for people, besides what a command answers.
func Notes(stderr io.Writer) func(format string, words ...any) {
	return func(format string, words ...any) {
		_, _ = fmt.Fprintf(stderr, "sidekeeper: "+format+"\n", words...) // nobody may be reading
	}
}
