// `torch_spyre._C._logging`: which messages of the C++ layers are printed. torch_spyre/logging_config.py is
// the door.

#include "glue/bindings.h"
#include "glue/log_filter.h"

namespace spyre::glue {
namespace {

enum class Level { NOTSET = 0, DEBUG = 10, INFO = 20, WARNING = 30, ERROR = 40, CRITICAL = 50 };

void initialize(LogFilter& filter, const std::map<std::string, int>& config) {
  filter.replace_levels(config);
}

/// A level above CRITICAL (a component that is switched off) has no name.
py::object get_level(const LogFilter& filter, const std::string& component) {
  const int level = filter.level(component);
  return level > static_cast<int>(Level::CRITICAL) ? py::cast(level) : py::cast(static_cast<Level>(level));
}

}  // namespace

void bind_logging(py::module& module) {
  py::module logging =
      module.def_submodule("_logging", "Which messages of the C++ layers are printed, and where.");
  py::enum_<Level>(logging, "LogLevel")
      .value("NOTSET", Level::NOTSET)
      .value("DEBUG", Level::DEBUG)
      .value("INFO", Level::INFO)
      .value("WARNING", Level::WARNING)
      .value("ERROR", Level::ERROR)
      .value("CRITICAL", Level::CRITICAL)
      .export_values();
  py::class_<LogFilter, std::unique_ptr<LogFilter, py::nodelete>>(logging, "LoggingConfig")
      .def_static("instance", &LogFilter::instance, py::return_value_policy::reference)
      .def("initialize_from_python", &initialize, py::arg("config"),
           "Levels by component; others are forgotten.")
      .def("get_log_level", &get_level, py::arg("component"))
      .def(
          "set_log_level",
          [](LogFilter& filter, const std::string& component, Level level) {
            filter.set_level(component, static_cast<int>(level));
          },
          py::arg("component"), py::arg("level"))
      .def(
          "is_enabled",
          [](const LogFilter& filter, const std::string& component, Level level) {
            return filter.is_enabled(component, static_cast<int>(level));
          },
          py::arg("component"), py::arg("level"))
      .def("get_components", &LogFilter::components)
      .def("set_log_file", &LogFilter::set_file, py::arg("path"));
}

}  // namespace spyre::glue
