#pragma once

#include "glue/eager_cache.h"
#include "glue/eager_request.h"
#include "glue/eager_rules.h"

/// How a call that was not seen before will run: its form as a graph, compiled, into fresh tensors or into those that the
/// caller gave; or why it is refused.
namespace spyre::glue {

/// One row of the table.
struct EagerRow {
  const forms::FormRow* form;
  ResultRule results;
  std::string_view functional = {};  ///< of an in-place form: the operator that says what type it computes
};

/// `may_copy`: what cannot be written where it belongs may be copied there.
EagerPlan plan_call(const EagerRow& row, std::string name, const EagerCall& call,
                    std::vector<ResultSpec> specs, bool may_copy);

}  // namespace spyre::glue
