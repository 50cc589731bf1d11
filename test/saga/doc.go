// Package saga holds that sagas come to their end whatever dies: connections and processes, at every single statement, and
// many at once.
package saga
