"""Questions that are answered and not kept: who am I, what may I do."""

from __future__ import annotations

STRUCTS = """
FieldSelectorAttributes: rawSelector#1 requirements#2:[FieldSelectorRequirement]
FieldSelectorRequirement: key#1! operator#2! values#3:[string]
LabelSelectorAttributes: rawSelector#1 requirements#2:[LabelSelectorRequirement]
LocalSubjectAccessReview: apiVersion kind metadata#1:ObjectMeta spec#2!:SubjectAccessReviewSpec
    status#3:SubjectAccessReviewStatus
NonResourceAttributes: path#1 verb#2
NonResourceRule: nonResourceURLs#2:[string] verbs#1!:[string]
ResourceAttributes: fieldSelector#8:FieldSelectorAttributes group#3
    labelSelector#9:LabelSelectorAttributes name#7 namespace#1 resource#5 subresource#6 verb#2
    version#4
ResourceRule: apiGroups#2:[string] resourceNames#4:[string] resources#3:[string] verbs#1!:[string]
SelfSubjectAccessReview: apiVersion kind metadata#1:ObjectMeta spec#2!:SelfSubjectAccessReviewSpec
    status#3:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: nonResourceAttributes#2:NonResourceAttributes
    resourceAttributes#1:ResourceAttributes
SelfSubjectReview: apiVersion kind metadata#1:ObjectMeta status#2:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo#1:UserInfo
SelfSubjectRulesReview: apiVersion kind metadata#1:ObjectMeta spec#2!:SelfSubjectRulesReviewSpec
    status#3:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace#1
SubjectAccessReview: apiVersion kind metadata#1:ObjectMeta spec#2!:SubjectAccessReviewSpec
    status#3:SubjectAccessReviewStatus
SubjectAccessReviewSpec: extra#5:{[string]} groups#4:[string]
    nonResourceAttributes#2:NonResourceAttributes resourceAttributes#1:ResourceAttributes uid#6
    user#3
SubjectAccessReviewStatus: allowed#1!:bool denied#4:bool evaluationError#3 reason#2
SubjectRulesReviewStatus: evaluationError#4 incomplete#3!:bool nonResourceRules#2!:[NonResourceRule]
    resourceRules#1!:[ResourceRule]
TokenReview: apiVersion kind metadata#1:ObjectMeta spec#2!:TokenReviewSpec
    status#3:TokenReviewStatus
TokenReviewSpec: audiences#2:[string] token#1
TokenReviewStatus: audiences#4:[string] authenticated#1:bool error#3 user#2:UserInfo
UserInfo: extra#4:{[string]} groups#3:[string] uid#2 username#1
"""
