// All components, for pages.
export { Action, ActionDialog, type ActionProps, withReason } from "./action";
export { Chart, type Line } from "./chart";
export { Command, Copy } from "./copy";
export { Dialog } from "./dialog";
export { Empty, Problem, Skeleton, toast } from "./feedback";
export { Check, Field, Select } from "./field";
export { Icon, type IconName } from "./icon";
export { Card, Facts, Link, Page, Pager, Progress, Stat, Tabs } from "./page";
export { Json, Payload } from "./payload";
export { Spark } from "./spark";
export { type Column, Table } from "./table";
export { ShortID, Text } from "./text";
export { Age, Badge, Guess, Num, Rate, Status, Time, type Tone } from "./values";
