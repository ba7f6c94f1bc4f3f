//go:build !race

package endtoend

const raced = false
