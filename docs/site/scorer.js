// SPDX-License-Identifier: BSD-3-Clause
// How the search orders its results: pages that answer questions come before sources and the changelog.
var Scorer = {
  score: ([page, , , , score]) =>
    page.startsWith("from-") ? score + 2 : page.startsWith("files/") || page === "changelog" ? score - 4 : score,
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
