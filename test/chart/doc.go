// Package chart tests the Helm chart as Helm reads it: its lint, what its templates render for several values, what it refuses,
// that its documents tell every value, and that the injector makes of an annotated pod what the templates make. It has no code of
// its own.
package chart
