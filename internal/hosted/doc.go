// Package hosted has the providers on the internet that people use with a key
// of their own: the native DeepSeek, and those of the installed catalogue.
//
// Rules of the package:
//
//   - A provider without its key can be listed and described. Only a request
//     fails, with MISSING_CREDENTIAL, before anything is sent.
//   - What is known of a model is declared: nobody is asked about it. Every fact
//     names the field of the catalogue that it comes from, and an entry that says
//     nothing proves nothing.
//   - DeepSeek passes every model id on. A provider of the catalogue has the
//     models of its entry and no others: any other is UNKNOWN_MODEL before any
//     I/O, whatever address was configured.
//   - A provider of the catalogue without an OpenAI-compatible endpoint gives the
//     reason instead of a list.
//   - The catalogue is read when it is first asked for, once. Importing the
//     package costs no time at the start of the process.
package hosted
