// `shorthand plot slice` and `shorthand plot grouping`: pictures of one head.
#include <memory>

#include "command.h"
#include "result_files.h"
#include "slice_options.h"
#include "slice_picture.h"

namespace shorthand {
namespace {

struct Options {
  SliceOptions slice;
  std::string output_file;
};

using Picture = std::string (*)(const std::string& model, const ModelSlice& slice);

int Draw(const Options& options, Picture picture) {
  if (Status status = CheckWritable(options.output_file); !status.ok()) return Fail(status);
  ModelSlice slice;
  if (const int code = ReadSlice(options.slice, &slice); code != kExitDone) return code;
  const Status written =
      WriteText(options.output_file, picture(options.slice.capture.request.model, slice));
  return written.ok() ? kExitDone : Fail(written);
}

Runner Declare(CLI::App& app, std::shared_ptr<Options> options, Picture picture) {
  AddSliceOptions(app, options->slice);
  AddPictureOption(app, options->output_file);
  return [options, picture] { return Draw(*options, picture); };
}

}  // namespace

Runner DeclarePlotSlice(CLI::App& app) {
  app.footer(
      "A heat map of the numbers, and one of the error that each code makes: blue is positive,\n"
      "red negative, brown lost. `shorthand inspect slice` has the same as numbers.\n\n"
      "Example:\n"
      "  shorthand plot slice -m smollm2 --side V --code u2/ch --code u2/tok -o values.svg");
  return Declare(app, std::make_shared<Options>(), SlicePicture);
}

Runner DeclarePlotGrouping(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->slice.slice.tokens = "64..79";
  options->slice.slice.shown_channels = 64;
  options->slice.slice.codes = {"u4/tok", "u4/ch", "u4/tok32"};
  app.footer(
      "The numbers of a head, coloured by the scale that they share, for every code.\n\n"
      "Example:\n"
      "  shorthand plot grouping -m smollm2 --code u2/tok --code u2/ch -o grouping.svg");
  return Declare(app, options, GroupingPicture);
}

}  // namespace shorthand
