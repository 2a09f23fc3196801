"""Prints as JSON what TensorBoard itself finds in a folder of event files: python3 tests/tensorboard_check.py FOLDER"""

import json
import sys

from tensorboard.backend.event_processing import event_accumulator as events
from tensorboard.plugins.hparams import plugin_data_pb2

everything = {kind: 0 for kind in (events.SCALARS, events.TENSORS)}
read = events.EventAccumulator(sys.argv[1], size_guidance=everything).Reload()
scalars = {
    tag: [[event.wall_time, event.step, event.value] for event in read.Scalars(tag)]
    for tag in read.Tags()["scalars"]
}


def hparams(tag):
    content = read.SummaryMetadata(tag).plugin_data.content
    return plugin_data_pb2.HParamsPluginData.FromString(content)


start = hparams("_hparams_/session_start_info").session_start_info
end = hparams("_hparams_/session_end_info").session_end_info
values = {key: getattr(value, value.WhichOneof("kind")) for key, value in start.hparams.items()}
found = {
    "group": start.group_name,
    "hparams": values,
    "start": start.start_time_secs,
    "end": end.end_time_secs,
    "status": end.status,
}
print(json.dumps({"scalars": scalars, "hparams": found}))
