"""Pods: never refused, only warned of. A door that errs here would stop everybody's work."""

from __future__ import annotations

from posse.admission.lookups import Authorizer, Reader, queue_standing
from posse.admission.verdicts import PASSED, Door, Verdict, annotation
from posse.admission.wire import CREATE, AdmissionRequest
from posse.objects.keys import GROUP_NAME, QUEUE_NAME, VOLCANO_GROUP_NAME
from posse.objects.kinds import POD


async def _judge(request: AdmissionRequest, reader: Reader, authorizer: Authorizer) -> Verdict:
    """A pod without a group waits in the queue that it names itself."""
    pod = request.object
    queue = annotation(pod, QUEUE_NAME)
    if request.operation != CREATE or not queue:
        return PASSED
    if annotation(pod, GROUP_NAME) or annotation(pod, VOLCANO_GROUP_NAME):
        return PASSED
    standing = await queue_standing(reader, queue, request.namespace)
    said = standing.refusal or standing.doubt
    return Verdict(warnings=(said,)) if said else PASSED


DOOR = Door((POD.version,), _judge)
