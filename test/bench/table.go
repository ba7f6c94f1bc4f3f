package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table is what an experiment has found. The first column is words, the others are figures.
type table struct {
	title  string
	header []string
	rows   [][]string
	notes  []string
}

// cell is the figure of a row in a column.
func (t *table) cell(row, column string) (float64, error) {
	at := slices.Index(t.header, column)
	for _, cells := range t.rows {
		if cells[0] == row && at > 0 {
			return strconv.ParseFloat(cells[at], 64)
		}
	}
	return 0, fmt.Errorf("no row %q with a column %q", row, column)
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table for people, or in Markdown, which is for them too.
func (t *table) print(out io.Writer, markdown bool) {
	lines := append([][]string{t.header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	title, left, between, right := t.title, "", "  ", ""
	if markdown {
		title, left, between, right = "### "+t.title, "| ", " | ", " |"
	}
	fmt.Fprintf(out, "%s\n\n", title)
	for i, line := range lines {
		fmt.Fprintln(out, left+strings.Join(padded(line, widths), between)+right)
		if i == 0 && markdown {
			fmt.Fprintln(out, "|"+"---|"+strings.Repeat("---:|", len(widths)-1))
		}
	}
	for _, note := range t.notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
	fmt.Fprintln(out)
}

// padded makes the cells as wide as their columns.
func padded(cells []string, widths []int) []string {
	wide := make([]string, len(cells))
	for i, cell := range cells {
		blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		wide[i] = blanks + cell
		if i == 0 {
			wide[i] = cell + blanks
		}
	}
	return wide
}
